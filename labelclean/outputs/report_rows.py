"""Rows of issues.parquet as the page shows them, and which of them a file carries."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelclean.correction.actions import KEEP, UNREADABLE

FIRST, SHOWN_SPREAD, SHOWN_KEPT, BAD = 600, 600, 150, 50
NUMBERS = (
    "p_error", "p_given", "p_suggested", "attention", "target_given", "margin",
    "neighbour_agreement",
)  # fmt: skip

Row = dict[str, Any]
Neighbours = Mapping[int, Sequence[tuple[int, str]]]
"""Row to its nearest rows and their given labels, nearest first."""


def page_rows(issues: pa.Table, places: NDArray[np.int64], neighbours: Neighbours) -> list[Row]:
    """Give lines of issues.parquet as the page reads them, without pictures and decisions.

    Args:
        issues: The table.
        places: Which lines, 0-based.
        neighbours: Nearest rows, where they are known.
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
            "picture": None,
            "full": None,
            "neighbours": [
                {"row": row, "label": label, "picture": None}
                for row, label in neighbours.get(line["row"], ())
            ],
            "decision": None,
        }
        for line in lines
    ]


def choose_places(action: NDArray[np.object_]) -> NDArray[np.int64]:
    """Choose what a file shows of M ranked rows: the most suspect, and samples of the rest.

    Args:
        action: (M,) text, in the order of the ranking.
    """
    kept, bad = action == KEEP, action == UNREADABLE
    flagged = np.flatnonzero(~kept & ~bad)
    chosen = [
        flagged[:FIRST],
        _evenly(flagged[FIRST:], SHOWN_SPREAD),
        _evenly(np.flatnonzero(kept), SHOWN_KEPT),
        _evenly(np.flatnonzero(bad), BAD),
    ]
    return np.concatenate(chosen)


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
