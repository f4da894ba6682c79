"""What people decided about rows: decisions.jsonl, read strictly."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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


def believe(manifest: Manifest, people: Decisions) -> Manifest:
    """Give the manifest with the labels people confirmed or gave, which count as verified."""
    label, verified = manifest.label.copy(), manifest.verified.copy()
    for row, decision in people.items():
        if decision.what in (CONFIRM, RELABEL):
            verified[row] = True
            label[row] = manifest.label[row] if decision.label is None else decision.label
    return replace(manifest.with_label(label), verified=verified) if people else manifest


def left_out(manifest: Manifest, people: Decisions) -> NDArray[np.bool_]:
    """(N,) rows that people want out: dropped, or no label fits."""
    out = np.zeros(len(manifest), bool)
    out[[row for row, decision in people.items() if decision.what in (DROP, NONE)]] = True
    return out


class History:
    """Decisions in the order in which they were made.

    A later decision about a row wins; an `undo` takes back the latest one about its row, and the
    one before it counts again.

    Args:
        log: Every line, `undo` too.
    """

    def __init__(self, log: Iterable[tuple[int, Decision]] = ()) -> None:
        self.log: list[tuple[int, Decision]] = []
        self.current: dict[int, Decision] = {}
        self._standing: dict[int, tuple[int, Decision]] = {}
        self._about: dict[int, list[int]] = {}
        for row, decision in log:
            self.add(row, decision)

    def add(self, row: int, decision: Decision) -> None:
        """Add a line."""
        about = self._about.setdefault(row, [])
        if decision.what != UNDO:
            about.append(len(self.log))
            self._standing[len(self.log)] = (row, decision)
        elif about:
            del self._standing[about.pop()]
        self.log.append((row, decision))
        if about:
            self.current[row] = self._standing[about[-1]][1]
        else:
            self.current.pop(row, None)

    def last(self) -> tuple[int, Decision] | None:
        """Give the latest decision that was not taken back."""
        return next(reversed(self._standing.values()), None)


def read_decisions(path: Path, manifest: Manifest) -> dict[int, Decision]:
    """Read the decisions about the rows of a manifest that count.

    Raises:
        DataError: As `read_history`.
    """
    return read_history(path, manifest).current


def read_history(path: Path, manifest: Manifest) -> History:
    """Read all decisions about the rows of a manifest.

    Raises:
        DataError: The file cannot be read, or lines are not decisions about these rows; every
            such line is named.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"decisions {path} cannot be read: {error}.") from error
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


def class_codes(manifest: Manifest) -> dict[str, int]:
    """Give the position of every class by its name as text."""
    return {str(name): code for code, name in enumerate(manifest.classes)}


def _decision(line: str, manifest: Manifest, codes: Mapping[str, int]) -> tuple[int, Decision]:
    try:
        entry = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not valid JSON ({error})") from error
    return check_decision(entry, manifest, codes)


def check_decision(
    entry: object, manifest: Manifest, codes: Mapping[str, int]
) -> tuple[int, Decision]:
    """Give the row and the decision that an object of a line, or of a request, stands for.

    Args:
        entry: What came out of JSON.
        manifest: What the decision must be about.
        codes: Class name to its position.

    Raises:
        ValueError: It is no decision about these rows; says why.
    """
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
