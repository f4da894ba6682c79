"""A finished run, read back: what run.json says and the settings it was made with."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from labelclean.errors import ConfigError, DataError
from labelclean.recipe import Recipe
from labelclean.runs.folder import RUN
from labelclean.runs.reading import read_facts


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
