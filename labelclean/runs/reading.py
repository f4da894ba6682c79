"""A finished run, read back: its facts, its settings, and the very manifest it audited."""

import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from labelclean.data.manifest import Manifest
from labelclean.data.many_files import is_pattern
from labelclean.data.opening import open_manifest
from labelclean.data.places import Place, join
from labelclean.data.settings import DataSettings
from labelclean.errors import ConfigError, DataError, shortlist
from labelclean.outputs.run_json import RUN_SCHEMA
from labelclean.recipe import Recipe
from labelclean.runs.digests import (
    JUDGED_FILES,
    MODEL_CARD,
    OBSERVED_FILES,
    require_own_files,
)
from labelclean.runs.folder import RUN, RunFolder

_NEEDED = {
    "input": dict, "classes": list, "columns": dict, "counts": dict, "recipe": dict, "files": dict,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run folder and what it was about.

    Args:
        folder: The run folder.
        facts: What run.json says.
        manifest: What was audited, as it was.
    """

    folder: Path
    facts: Mapping[str, Any]
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run folder that is complete.

    Args:
        folder: The run folder.
        facts: What run.json says.
        recipe: The resolved settings in it.
    """

    folder: Path
    facts: Mapping[str, Any]
    recipe: Recipe


def read_facts(folder: Path, *, half_reported: bool = False) -> dict[str, Any]:
    """Read run.json of a run whose files are its own.

    Args:
        folder: The run folder.
        half_reported: Take a run whose report was stopped, so that its files may be of two
            judgements.

    Raises:
        DataError: There is none, it is something else, or files are of another run.
    """
    facts = run_facts_alone(folder, half_reported=half_reported)
    torn = half_reported and RunFolder(folder).half_reported
    require_own_files(folder, facts, (MODEL_CARD, *JUDGED_FILES) if torn else (MODEL_CARD,))
    return facts


def require_own_model(folder: Path, facts: Mapping[str, Any]) -> None:
    """Refuse a model that was read while another run took the place of the one it is about.

    Its config.json names the digest of its weights, and whoever reads it compares that.

    Args:
        folder: The run folder.
        facts: What run.json said before the model was read.

    Raises:
        DataError: The model is another one now.
    """
    require_own_files(folder, facts, (*JUDGED_FILES, *OBSERVED_FILES, MODEL_CARD))


def run_facts_alone(folder: Path, *, half_reported: bool = False) -> dict[str, Any]:
    """Read run.json as `read_facts`, without looking at the files it is about."""
    path, run = folder / RUN, RunFolder(folder)
    if run.half_reported:
        if not half_reported:
            raise DataError(
                f"{path} is missing: `labelclean report` was stopped, and the files in {folder} "
                f"may be of two judgements. Run `labelclean report {folder}` again."
            )
        path = run.aside
    if not path.is_file():
        raise DataError(
            f"{path} is missing: {folder} holds no finished run of labelclean. Name the folder "
            "that `labelclean audit` wrote, or end the run with --resume."
        )
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is damaged ({error}); audit the data again.") from error
    missing = [
        key
        for key, kind in _NEEDED.items()
        if not isinstance(facts, dict) or not isinstance(facts.get(key), kind)
    ]
    if not missing and not _is_sound(facts):
        missing = ["digest of the input or names of columns and classes"]
    known = facts.get("schema_version") if isinstance(facts, dict) else None
    if isinstance(known, int) and known != RUN_SCHEMA:
        raise DataError(
            f"{path} has schema version {known!r}, and this labelclean reads {RUN_SCHEMA}; use the "
            "version that wrote it, or audit again."
        )
    if missing or known is None:
        absent = missing or ["schema version"]
        raise DataError(f"{path} is no run.json of labelclean: no {shortlist(absent)}.")
    return facts


def _is_sound(facts: Mapping[str, Any]) -> bool:
    image, label = (facts["columns"].get(name) for name in ("image", "label"))
    return (
        isinstance(facts["input"].get("digest"), str)
        and isinstance(facts["input"].get("path"), str | None)
        and isinstance(facts["input"].get("image_root"), str | None)
        and isinstance(image, str | None)
        and isinstance(label, str | None)
        and all(type(name) in (str, int) for name in facts["classes"])
        and all(isinstance(section, dict) for section in facts["recipe"].values())
        and all(isinstance(digest, str) for digest in facts["files"].values())
    )


def open_audited(
    folder: Path, manifest: Place | None = None, *, half_reported: bool = False
) -> OpenedRun:
    """Open a run and read the manifest it audited.

    Args:
        folder: The run folder.
        manifest: Where the manifest is now; None: where it was.
        half_reported: Take a run whose report was stopped.

    Raises:
        DataError: The folder holds no run, or the manifest is gone or was changed since.
    """
    facts = read_facts(folder, half_reported=half_reported)
    found = read_again(folder, facts, manifest or original_path(folder, facts))
    expected = facts["input"]["digest"]
    if found.digest != expected:
        raise DataError(
            f"{found.source} is not what was audited: its digest is {found.digest}, the run "
            f"{folder} is about {expected}. Restore it, name the audited one with --manifest, or "
            "audit again."
        )
    return OpenedRun(folder, facts, found)


def original_path(folder: Path, facts: Mapping[str, Any]) -> Place:
    """Give where the audited manifest was, as run.json says."""
    path = facts["input"].get("path")
    if not isinstance(path, str):
        raise DataError(
            f"{folder / RUN} does not say where the manifest is; name it with --manifest."
        )
    return join(folder, path)


def read_again(folder: Path, facts: Mapping[str, Any], path: Place) -> Manifest:
    """Read a manifest as a run read its own: the same columns, root and limit."""
    if not is_pattern(path) and not path.exists():
        raise DataError(f"{path} does not exist; name the audited manifest with --manifest.")
    root = facts["input"].get("image_root")
    try:
        settings = dict(facts["recipe"]["data"])
        settings |= {
            "label_col": facts["columns"]["label"],
            "image_col": facts["columns"]["image"],
            "image_root": None if root is None else str(join(folder, root)),
        }
        data = DataSettings(**settings)
    except (TypeError, KeyError) as error:
        raise DataError(f"{folder / RUN} holds no settings of labelclean ({error}).") from error
    # The pictures were looked at when the data was audited; they may have moved since.
    return open_manifest(path, data, need_images=False)


def load_run(folder: Path) -> StoredRun:
    """Read run.json of a finished run.

    Raises:
        DataError: There is none, it is damaged, or another version wrote it.
    """
    facts = read_facts(folder)
    try:
        recipe = _recipe(facts["recipe"])
        _ = facts["input"]["digest"], facts["seed"], facts["loss"]["name"]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"{folder / RUN} holds no settings of labelclean ({type(error).__name__}: {error}); "
            "audit the data again."
        ) from error
    return StoredRun(folder, facts, recipe)


def _recipe(plain: Mapping[str, Mapping[str, object]]) -> Recipe:
    sections = {}
    for name, kind in typing.get_type_hints(Recipe).items():
        known = {entry.name for entry in fields(kind)}
        unknown = [key for key in plain[name] if key not in known]
        if unknown:
            raise ConfigError(f"recipe.{name} has unknown keys {unknown}")
        sections[name] = kind(**plain[name])
    return Recipe(**sections)
