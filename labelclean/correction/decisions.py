"""What people decided about rows, and what each decision means: here and nowhere else."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labelclean.correction.actions import DROP, KEEP, RELABEL, REVIEW
from labelclean.data.manifest import Manifest
from labelclean.errors import shortlist

CONFIRM, GIVE_LABEL, LEAVE_OUT = "confirm", "relabel", "drop"
UNSURE, NONE_OF_THESE, UNDO = "unsure", "none_of_these", "undo"
DECISIONS = (CONFIRM, GIVE_LABEL, LEAVE_OUT, UNSURE, NONE_OF_THESE, UNDO)


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


GAVE, CONFIRMED, NOT_SURE, NO_LABEL_FITS, LEFT_OUT = REASONS_OF_PEOPLE = (
    "a person gave this label", "a person confirmed the label", "a person was not sure",
    "a person says no label fits", "a person left it out",
)  # fmt: skip
"""What stands as the reason of a row that a person decided."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a decision means for its row.

    Args:
        label: The class the row has from now on.
        vouched: A person vouches for that label.
        kept: The row stays in the data.
        wrong: Whether the given label is wrong; None: the person did not say.
        action: What becomes of the row.
        reason: Why, in a few words.
    """

    label: int
    vouched: bool
    kept: bool
    wrong: bool | None
    action: str
    reason: str


def meaning(decision: Decision, given: int) -> Meaning:
    """Say what a decision about a row with a given label means."""
    if decision.what in (CONFIRM, GIVE_LABEL):
        label = given if decision.label is None else decision.label
        if label != given:
            return Meaning(label, True, True, True, RELABEL, GAVE)
        return Meaning(label, True, True, False, KEEP, CONFIRMED)
    if decision.what == UNSURE:
        return Meaning(given, False, True, None, REVIEW, NOT_SURE)
    if decision.what == NONE_OF_THESE:
        return Meaning(given, False, False, True, DROP, NO_LABEL_FITS)
    return Meaning(given, False, False, None, DROP, LEFT_OUT)


def meanings(manifest: Manifest, people: Decisions) -> dict[int, Meaning]:
    """Say what every decision means for its row of a manifest."""
    return {row: meaning(made, int(manifest.label[row])) for row, made in people.items()}


def believe(manifest: Manifest, people: Decisions) -> Manifest:
    """Give the manifest with the labels people confirmed or gave, which count as verified."""
    label, verified = manifest.label.copy(), manifest.verified.copy()
    for row, meant in meanings(manifest, people).items():
        label[row] = meant.label
        verified[row] |= meant.vouched
    return replace(manifest.with_label(label), verified=verified) if people else manifest


def left_out(manifest: Manifest, people: Decisions) -> NDArray[np.bool_]:
    """(N,) rows that people want out: dropped, or no label fits."""
    out = np.zeros(len(manifest), bool)
    out[[row for row, meant in meanings(manifest, people).items() if not meant.kept]] = True
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


def class_codes(manifest: Manifest) -> dict[str, int]:
    """Give the position of every class by its name as text."""
    return {str(name): code for code, name in enumerate(manifest.classes)}


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
    if what != GIVE_LABEL:
        return row, Decision(what, None)
    label = entry.get("label")
    if not isinstance(label, str | int) or isinstance(label, bool) or str(label) not in codes:
        raise ValueError(f"label {label!r} is none of {shortlist(map(repr, codes))}")
    return row, Decision(what, codes[str(label)])
