"""Rows of issues.parquet as the page shows them, and which of them a file carries."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelclean.correction.actions import KEEP, UNREADABLE

FIRST, SHOWN_SPREAD, SHOWN_KEPT, BAD, LISTED = 600, 600, 150, 50, 300
SHOWN_COPIES = 8
NUMBERS = (
    "p_error", "p_given", "p_suggested", "attention", "target_given", "margin",
    "neighbour_agreement", "p_outlier", "ambiguity",
)  # fmt: skip

Row = dict[str, Any]
Neighbours = Mapping[int, Sequence[tuple[int, str]]]
"""Row to its nearest rows and their given labels, nearest first."""
Copies = Mapping[int, Sequence[tuple[int, str, str | None]]]
"""Row to the others that show the same picture, with their given labels and splits."""


def page_rows(
    issues: pa.Table,
    places: NDArray[np.int64],
    neighbours: Neighbours,
    copies: Copies = MappingProxyType({}),
) -> list[Row]:
    """Give lines of issues.parquet as the page reads them, without pictures and decisions.

    Args:
        issues: The table.
        places: Which lines, 0-based.
        neighbours: Nearest rows, where they are known.
        copies: Rows that show the same picture.
    """
    lines = issues.take(pa.array(places)).to_pylist()
    return [
        {
            "row": line["row"],
            "rank": line["rank"],
            "sample_id": line["sample_id"],
            "path": line["path"],
            "given": str(line["label_given"]),
            "suggested": str(line["label_suggested"]),
            "action": line["action"],
            **{name: _rounded(line[name]) for name in NUMBERS},
            "reason": line["reason"],
            "kind": line["kind"],
            "group": line["duplicate_group"],
            "leaks_to": line["leaks_to"],
            "picture": None,
            "full": None,
            "neighbours": [
                {"row": row, "label": label, "picture": None}
                for row, label in neighbours.get(line["row"], ())
            ],
            "copies": [
                {"row": row, "label": label, "split": split, "picture": None}
                for row, label, split in copies.get(line["row"], ())
            ],
            "decision": None,
        }
        for line in lines
    ]


def copies_of(
    issues: pa.Table,
    labels: NDArray[np.object_],
    splits: NDArray[np.object_] | None,
) -> dict[int, list[tuple[int, str, str | None]]]:
    """Give the other rows that show the same picture as each row, a few of each.

    Args:
        issues: issues.parquet.
        labels: (N,) the given label of every row of the manifest.
        splits: (N,) its split; None: there are none.
    """
    row, group = issues["row"].to_numpy(), issues["duplicate_group"].fill_null(-1).to_numpy()
    leaks = issues["leaks_to"].fill_null(-1).to_numpy()
    inside = np.flatnonzero(group >= 0)
    members: dict[int, list[int]] = {}
    for at in inside[np.argsort(row[inside], kind="stable")].tolist():
        members.setdefault(int(group[at]), []).append(int(row[at]))
    # Rows of splits that were not audited come first.
    beyond = inside[(leaks[inside] >= 0) & ~np.isin(leaks[inside], row)]
    for one, other in sorted({(int(group[at]), int(leaks[at])) for at in beyond.tolist()}):
        members[one].insert(0, other)

    def about(other: int) -> tuple[int, str, str | None]:
        return other, str(labels[other]), None if splits is None else str(splits[other])

    return {
        int(row[at]): [
            about(other) for other in members[int(group[at])][: SHOWN_COPIES + 1]
            if other != row[at]
        ][:SHOWN_COPIES]
        for at in inside.tolist()
    }  # fmt: skip


def choose_places(
    action: NDArray[np.object_], on_lists: Sequence[NDArray[np.bool_]] = ()
) -> NDArray[np.int64]:
    """Choose what a file shows of M ranked rows: the most suspect, and samples of the rest.

    Args:
        action: (M,) text, in the order of the ranking.
        on_lists: (M,) the rows of each list of findings, whose first ones are shown as well.
    """
    kept, bad = action == KEEP, action == UNREADABLE
    flagged = np.flatnonzero(~kept & ~bad)
    chosen = [
        flagged[:FIRST],
        _evenly(flagged[FIRST:], SHOWN_SPREAD),
        _evenly(np.flatnonzero(kept), SHOWN_KEPT),
        _evenly(np.flatnonzero(bad), BAD),
    ]
    chosen += [np.flatnonzero(listed & ~bad)[:LISTED] for listed in on_lists]
    # Each once, where it was chosen first.
    places = np.concatenate(chosen)
    first = np.unique(places, return_index=True)[1]
    found: NDArray[np.int64] = places[np.sort(first)]
    return found


def fitting(rows: Sequence[Row], budget: int) -> list[Row]:
    """Give as many rows, from the front, as take up to `budget` characters of JSON."""
    sizes = np.cumsum([len(json.dumps(row)) for row in rows])
    return list(rows[: int(np.searchsorted(sizes, budget, side="right"))])


def _evenly(places: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    if len(places) <= count:
        return places
    return places[np.linspace(0, len(places) - 1, count).astype(np.int64)]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
