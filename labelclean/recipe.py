"""Recipes: TOML whose sections are the rooms, plus overrides, resolved into frozen settings."""

import json
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from labelclean.catalogue import nearest_name, unknown_name
from labelclean.correction.policy import Policy
from labelclean.data.settings import DataSettings
from labelclean.errors import ConfigError, brief
from labelclean.evidence.sources import EvidenceSettings
from labelclean.models.settings import ModelSettings
from labelclean.training.settings import LossSettings, StrategySettings, TrainSettings

_LARGEST = 2**53


@dataclass(frozen=True, slots=True)
class Recipe:
    """Every setting of a run; one field per room that has settings."""

    data: DataSettings = field(default_factory=DataSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    loss: LossSettings = field(default_factory=LossSettings)
    strategy: StrategySettings = field(default_factory=StrategySettings)
    training: TrainSettings = field(default_factory=TrainSettings)
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
    correction: Policy = field(default_factory=Policy)

    def plain(self) -> dict[str, object]:
        """Give the resolved recipe as plain data, for run.json."""
        return asdict(self)


def recipe_folder() -> Path:
    """Find the shipped recipes: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "recipes"
    return installed if installed.is_dir() else package.parent / "recipes"


def recipe_names() -> list[str]:
    """List the names `--recipe` knows."""
    return sorted(path.stem for path in recipe_folder().glob("*.toml"))


def load_recipe(source: str | Path | None = None, overrides: Sequence[str] = ()) -> Recipe:
    """Resolve a recipe: defaults, then the recipe, then the overrides.

    Args:
        source: A shipped recipe's name, a path that ends in .toml, or None for the defaults.
        overrides: Texts of the form "section.key=value"; the value is read as TOML, and as plain
            text where that fails.

    Returns:
        The resolved recipe.

    Raises:
        ConfigError: The recipe cannot be found or read, or names an unknown section or key.
    """
    tables: dict[str, dict[str, object]] = {}
    if source is not None:
        path = _locate(source)
        tables = _read_toml(path)
        _refuse_unknown(tables, where=str(path))
    return _resolve(tables, overrides)


def flag_overrides(flags: Mapping[str, object]) -> list[str]:
    """Give flags by the setting they stand for as overrides; None: the flag was not given."""
    return [f"{key}={json.dumps(value)}" for key, value in flags.items() if value is not None]


def change_recipe(recipe: Recipe, overrides: Sequence[str]) -> Recipe:
    """Put overrides of the form "section.key=value" over a resolved recipe.

    Raises:
        ConfigError: As `load_recipe`.
    """
    tables: dict[str, dict[str, object]] = {}
    for name, kind in typing.get_type_hints(Recipe).items():
        table = asdict(getattr(recipe, name))
        tables[name] = {"name": table["name"], **table["params"]} if _is_family(kind) else table
    return _resolve(tables, overrides)


def _resolve(tables: dict[str, dict[str, object]], overrides: Sequence[str]) -> Recipe:
    kinds = typing.get_type_hints(Recipe)
    for text in overrides:
        section, key, value = _parse_override(text)
        table = tables.setdefault(section, {})
        if section in kinds and _is_family(kinds[section]) and key == "name":
            # Another member does not know the parameters of the one it replaces.
            table = tables[section] = table if table.get("name") == value else {}
        table[key] = value
    _refuse_unknown(tables, where="--set")
    built = {name: _build(name, kinds[name], table) for name, table in tables.items()}
    return Recipe(**built)


def _locate(source: str | Path) -> Path:
    if isinstance(source, Path) or source.endswith(".toml"):
        path = Path(source)
        if not path.is_file():
            raise ConfigError(f"recipe file {str(source)!r} does not exist.")
        return path
    if source not in recipe_names():
        raise unknown_name("recipe", source, recipe_names())
    return recipe_folder() / f"{source}.toml"


def _read_toml(path: Path) -> dict[str, dict[str, object]]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"recipe {path} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise ConfigError(f"recipe {path} is nested too deeply to be a recipe.") from error
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ConfigError(
                f"recipe {path}: {name!r} stands outside any section; "
                f"write it below one of {', '.join(f'[{s}]' for s in _sections())}."
            )
    return tables


def _sections() -> list[str]:
    return [entry.name for entry in fields(Recipe)]


def _refuse_unknown(tables: Mapping[str, Mapping[str, object]], where: str) -> None:
    kinds = typing.get_type_hints(Recipe)
    faults = []
    for section, table in tables.items():
        if section not in kinds:
            known = ", ".join(kinds)
            faults.append(f"no section [{section}];{nearest_name(section, kinds)} known: {known}")
            continue
        if _is_family(kinds[section]):
            # The other keys are parameters of the named member, which checks them when it is built.
            continue
        keys = [entry.name for entry in fields(kinds[section])]
        faults += [
            f"no key {section}.{key};{nearest_name(key, keys)} known: {', '.join(keys)}"
            for key in table
            if key not in keys
        ]
    if faults:
        raise ConfigError(f"{where}: " + "; ".join(faults) + ".")


def _parse_override(text: str) -> tuple[str, str, object]:
    name, equals, value = text.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot and section and key):
        raise ConfigError(f"--set {text!r} is not of the form section.key=value.")
    try:
        return section, key, tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        return section, key, value.strip()


def _build(section: str, kind: type, table: Mapping[str, object]) -> Any:
    hints = typing.get_type_hints(kind)
    values: dict[str, object] = {}
    if _is_family(kind):
        params = {key: value for key, value in table.items() if key not in hints}
        table = {key: value for key, value in table.items() if key in hints}
        values["params"] = params
    for key, given in table.items():
        accepted = _plain_types(hints[key])
        value = float(given) if float in accepted and type(given) is int else given
        if type(value) is int and not -_LARGEST <= value <= _LARGEST:
            raise ConfigError(f"{section}.{key} is {brief(str(value))}; that is too large.")
        if type(value) not in accepted:
            wanted = " or ".join(sorted(t.__name__ for t in accepted if t is not type(None)))
            raise ConfigError(f"{section}.{key} is {value!r}; it must be of type {wanted}.")
        values[key] = value
    return kind(**values)


def _is_family(kind: type) -> bool:
    return {entry.name for entry in fields(kind)} == {"name", "params"}


def _plain_types(hint: object) -> tuple[type, ...]:
    if isinstance(hint, types.UnionType):
        return tuple(t for arg in hint.__args__ for t in _plain_types(arg))
    origin = typing.get_origin(hint) or hint
    if not isinstance(origin, type):
        raise TypeError(f"settings may only use plain types, not {hint!r}")
    return (origin,)
