"""What people decided about rows: decisions.jsonl, read strictly."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from labelclean.data.manifest import Manifest
from labelclean.errors import DataError, shortlist

CONFIRM, RELABEL, DROP, UNSURE, NONE = "confirm", "relabel", "drop", "unsure", "none_of_these"
UNDO = "undo"
DECISIONS = (CONFIRM, RELABEL, DROP, UNSURE, NONE, UNDO)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided about a row.

    Args:
        what: One of DECISIONS, never `undo`.
        label: Position of the class, for `relabel`; else None.
    """

    what: str
    label: int | None


Decisions = Mapping[int, Decision]
"""Row to the decision that counts."""


def read_decisions(path: Path, manifest: Manifest) -> dict[int, Decision]:
    """Read decisions about the rows of a manifest; a later line about the same row wins.

    Raises:
        DataError: The file cannot be read, or lines are not decisions about these rows; every
            such line is named.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"decisions {path} cannot be read: {error}.") from error
    codes = {str(name): code for code, name in enumerate(manifest.classes)}
    found: dict[int, Decision] = {}
    faults = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row, decision = _decision(line, manifest, codes)
        except ValueError as error:
            faults.append(f"line {number}: {error}")
            continue
        if decision.what == UNDO:
            found.pop(row, None)
        else:
            found[row] = decision
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
    if not isinstance(entry, dict):
        raise ValueError("not a JSON object")
    row, what = entry.get("row"), entry.get("decision")
    if type(row) is not int or not 0 <= row < len(manifest):
        raise ValueError(f"row {row!r} is not in 0 to {len(manifest) - 1}")
    if entry.get("sample_id") != manifest.sample_id[row]:
        raise ValueError(
            f"sample_id {entry.get('sample_id')!r}, but row {row} is {manifest.sample_id[row]!r}"
        )
    if what not in DECISIONS:
        raise ValueError(f"decision {what!r} is none of {', '.join(DECISIONS)}")
    if what != RELABEL:
        return row, Decision(what, None)
    label = entry.get("label")
    if not isinstance(label, str | int) or isinstance(label, bool) or str(label) not in codes:
        raise ValueError(f"label {label!r} is none of {shortlist(map(repr, codes))}")
    return row, Decision(what, codes[str(label)])
