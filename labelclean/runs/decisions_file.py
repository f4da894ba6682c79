"""decisions.jsonl: what people decided about rows, read strictly."""

import json
from collections.abc import Mapping
from pathlib import Path

from labelclean.correction.decisions import Decision, History, check_decision, class_codes
from labelclean.data.manifest import Manifest
from labelclean.errors import DataError, shortlist


def read_decisions(path: Path, manifest: Manifest) -> dict[int, Decision]:
    """Read the decisions about the rows of a manifest that count.

    Raises:
        DataError: As `read_history`.
    """
    return read_history(path, manifest).current


def read_history(path: Path, manifest: Manifest, *, torn: bool = False) -> History:
    """Read all decisions about the rows of a manifest.

    Args:
        path: decisions.jsonl.
        manifest: What was audited.
        torn: Pass over a last line without its end, which a crash may leave; the next review
            moves it away.

    Raises:
        DataError: The file cannot be read, or lines are not decisions about these rows; every
            such line is named.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"decisions {path} cannot be read: {error}.") from error
    if torn:
        text = text[: text.rfind("\n") + 1]
    codes = class_codes(manifest)
    found = History()
    faults = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found.add(*_decision(line, manifest, codes))
        except ValueError as error:
            faults.append(f"line {number}: {error}")
    if faults:
        raise DataError(
            f"{path} holds {len(faults)} lines that are no decisions about {manifest.source.name} "
            f"({shortlist(faults)}). Correct or remove them."
        )
    return found


def _decision(line: str, manifest: Manifest, codes: Mapping[str, int]) -> tuple[int, Decision]:
    try:
        entry = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not valid JSON ({error})") from error
    return check_decision(entry, manifest, codes)
