"""Folds and samples of rows: every class spread evenly, rows of one group never apart."""

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import ENOUGH_ROWS, Ints

ENOUGH_PER_CLASS = 512


def assign_folds(
    label: Ints, folds: int, rng: np.random.Generator, group: NDArray[np.object_] | None = None
) -> Ints:
    """Give every row a fold, 0 ... folds-1.

    Without groups the rows of each class are dealt out in random order. With groups whole groups
    are dealt out, the largest first, each to the fold that has fewest rows of the group's most
    frequent label. scikit-learn's StratifiedGroupKFold deals other folds, and 20,000 groups of 100
    classes in 8.6 s instead of 0.24 s.

    Args:
        label: (N,) given labels.
        folds: Number of folds.
        rng: Where the order comes from.
        group: (N,) rows with the same text stay together; None: every row is its own group.
    """
    if group is not None:
        return _grouped(label, folds, rng, group)
    fold = np.empty(len(label), dtype=np.int64)
    for one in np.unique(label):
        rows = rng.permutation(np.flatnonzero(label == one))
        # A random start: small classes would otherwise all fill the first folds.
        fold[rows] = (np.arange(len(rows)) + rng.integers(folds)) % folds
    return fold


def enough_rows(classes: int) -> int:
    """Give how many rows settle a handful of numbers for each class: of more, a part is asked."""
    return max(ENOUGH_ROWS, ENOUGH_PER_CLASS * classes)


def some_rows(count: int, most: int) -> Ints:
    """Give all rows, or a sample of very many, in order; the same every time."""
    if count <= most:
        return np.arange(count)
    # Drawn, not evenly spaced: many tables repeat their classes in a fixed rhythm.
    return np.sort(np.random.default_rng(0).choice(count, most, replace=False))


def _grouped(label: Ints, folds: int, rng: np.random.Generator, group: NDArray[np.object_]) -> Ints:
    names, member = np.unique(group.astype(str), return_inverse=True)
    size = np.bincount(member)
    counts = np.zeros((len(names), int(label.max()) + 1), dtype=np.int64)
    np.add.at(counts, (member, label), 1)
    main = counts.argmax(axis=1)
    order = rng.permutation(len(names))
    order = order[np.argsort(-size[order], kind="stable")]
    filled = np.zeros((folds, counts.shape[1]), dtype=np.int64)
    total = np.zeros(folds, dtype=np.int64)
    place = np.empty(len(names), dtype=np.int64)
    for one in order:
        best = np.lexsort((total, filled[:, main[one]]))[0]
        place[one] = best
        filled[best] += counts[one]
        total[best] += size[one]
    return place[member]
