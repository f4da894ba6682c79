"""The likeliest finding about a row, and the rows each finding is about."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Bools, Floats, Ints, Probs
from labelclean.correction.actions import KEEP
from labelclean.data.manifest import Manifest
from labelclean.evidence.duplicates import DuplicateGroups

FINE, MISLABELLED, OUTLIER, AMBIGUOUS, CONFLICT = KINDS = (
    "fine", "mislabelled", "outlier", "ambiguous", "conflict",
)  # fmt: skip
EXACT, NEAR = "exact", "near"
OUTLIERS, DUPLICATES, LEAKS = LISTS = ("outliers", "duplicates", "leaks")
"""Findings beside wrong labels that have lists of their own."""
EVEN = 0.5
"""Second best class over best: from here on a row is shared by both."""


def class_ambiguity(probs: Probs) -> Floats:
    """(n,) how evenly two classes share a row of (n, C): the second best over the best, 0 to 1."""
    if probs.shape[1] < 2:
        return np.zeros(len(probs))
    best = np.partition(probs, -2, axis=1)[:, -2:].astype(np.float64)
    shared: Floats = best[:, 0] / np.maximum(best[:, 1], 1e-12)
    return shared


def likeliest_kind(
    action: NDArray[np.object_],
    p_error: Floats,
    p_moved: Floats,
    p_outlier: Floats,
    ambiguity: Floats,
    conflict: Bools,
    verified: Bools,
) -> NDArray[np.object_]:
    """(n,) text of KINDS.

    Of two rows with one picture and two labels one is wrong for certain, so a conflict stands above
    everything that is only likely; a person who vouched for a label, above all.

    Args:
        action: (n,) what was decided.
        p_error: (n,) probability that the label is wrong.
        p_moved: (n,) probability of another suggested label; 0 where the label stays.
        p_outlier: (n,) probability that none of the classes is shown; NaN: not known.
        ambiguity: (n,) how evenly two classes share the row.
        conflict: (n,) the same picture stands under another label.
        verified: (n,) a person vouched for the label.
    """
    kind = np.full(len(action), FINE, dtype=object)
    kind[(action != KEEP) | (p_error > 0.5)] = MISLABELLED
    # Where a suggestion is likelier than not, the other class does not share the row: it has it.
    kind[(ambiguity >= EVEN) & (p_moved <= 0.5)] = AMBIGUOUS
    kind[np.nan_to_num(p_outlier) > np.maximum(0.5, p_moved)] = OUTLIER
    kind[verified] = FINE
    kind[conflict] = CONFLICT
    return kind


def copies(same: DuplicateGroups, manifest: Manifest, rows: Ints) -> dict[str, NDArray[Any]]:
    """Give duplicate_group, duplicate_kind and leaks_to of some rows (M,) of a manifest."""
    count = len(manifest)
    exact = np.zeros(count, bool)
    exact[same.row[same.exact]] = True
    group = same.of_rows(count)[rows]
    kind = np.where(exact[rows], EXACT, NEAR).astype(object)
    kind[group < 0] = None
    leaks = same.leaks(manifest.split, count)[rows]
    return {"duplicate_group": group, "duplicate_kind": kind, "leaks_to": leaks}


def rows_on_lists(columns: Mapping[str, NDArray[Any]]) -> dict[str, Bools]:
    """Say which rows are on which of LISTS.

    Args:
        columns: kind, duplicate_group and leaks_to, each (M,); -1: no group, no leak.
    """
    return {
        OUTLIERS: np.asarray(columns["kind"] == OUTLIER, bool),
        DUPLICATES: np.asarray(columns["duplicate_group"] >= 0, bool),
        LEAKS: np.asarray(columns["leaks_to"] >= 0, bool),
    }


def with_beside(
    reason: NDArray[np.object_], rows: Ints, leaks_to: Ints, faults: Mapping[int, str]
) -> NDArray[np.object_]:
    """(M,) reasons, with what else there is to say about the rows (M,)."""
    said = reason.copy()
    for at in np.flatnonzero(leaks_to >= 0):
        said[at] += "; the same picture is in another split"
    for at in np.flatnonzero(np.isin(rows, np.array(list(faults), np.int64))):
        said[at] += f"; quality: {faults[int(rows[at])]}"
    return said


def count_findings(
    columns: Mapping[str, NDArray[Any]], unknown: tuple[str, ...]
) -> dict[str, object]:
    """Count what was found beside wrong labels, for run.json.

    Args:
        columns: kind, duplicate_group, duplicate_kind and leaks_to, each (M,).
        unknown: What could not be found, and why.
    """
    group = columns["duplicate_group"]
    return {
        "kinds": {name: int(np.count_nonzero(columns["kind"] == name)) for name in KINDS},
        "duplicates": {
            "rows": int(np.count_nonzero(group >= 0)),
            "groups": len(np.unique(group[group >= 0])),
            **{
                name: int(np.count_nonzero(columns["duplicate_kind"] == name))
                for name in (EXACT, NEAR)
            },
        },
        "leaks": int(np.count_nonzero(columns["leaks_to"] >= 0)),
        "unknown": list(unknown),
    }
