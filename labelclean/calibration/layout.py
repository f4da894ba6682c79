"""Two layouts of (rows x classes) evidence behind one set of sums.

The transition fit needs sums over the classes of a row, over the rows of a class and over pairs
(true class, given label). With few classes the evidence is a dense array; with many, almost every
probability is tiny, and only classes above 1/64 (so at most 64 a row), the most probable class and
the given label are kept. The remainder keeps its share of the row but is never called the truth.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from labelclean.arrays import Floats, Ints, Probs, Singles
from labelclean.calibration.arrays import (
    DENSE_CLASSES,
    log_floor,
    tile_rows,
    to_power,
    weighted_count,
)
from labelclean.calibration.sparse_layout import Sparse, sparse_rows, with_pairs


@dataclass(frozen=True, slots=True)
class DenseRows:
    """What scoring asks of rows with all their classes: entries are arrays of shape (C, N).

    Args:
        label: (N,) given label.
    """

    label: Ints

    def of_given(self, entries: Singles) -> Singles:
        """Entry of the given label of each row: (N,)."""
        count = len(self.label)
        return entries.ravel().take(self.label * count + np.arange(count))

    def row_sum(self, entries: Singles) -> Singles:
        """Sum over the classes of each row: (N,)."""
        # NumPy's own sum takes another order where there is one row: answers must not depend on
        # how rows are put together.
        total: Singles = entries[0].copy()
        for row in entries[1:]:
            total += row
        return total

    def row_max(self, entries: Singles) -> Singles:
        """Largest entry of each row: (N,)."""
        top: Singles = np.maximum.reduce(entries, axis=0)
        return top

    def from_pairs(self, values: Singles) -> Singles:
        """Give every entry the value of its pair (class, given label); values (C * C,)."""
        size = math.isqrt(len(values))
        return np.take(values.reshape(size, size), self.label, axis=1, mode="clip")

    def best_class(self, entries: Singles, rows: Ints) -> tuple[Singles, Ints]:
        """Largest entry and its class in the chosen rows; rows (n,) rising."""
        part = entries.take(rows, axis=1)
        top = self.row_max(part)
        # NumPy finds the first hit in columns of flags several times as fast as the largest number.
        return top, (part == top).argmax(axis=0)


@dataclass(frozen=True, slots=True)
class Dense(DenseRows):
    """All classes of every row, and the sums the fit asks for.

    Args:
        label: (N,) given label.
        log_p: (C, N) log probability, the row's largest is zero.
    """

    log_p: Singles

    @property
    def given(self) -> tuple[Ints, Ints]:
        """Index of the given label's entry of every row."""
        return self.label, np.arange(len(self.label))

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """(true class, given label) of every pair, each (C * C,)."""
        true, given = np.indices((len(self.log_p), len(self.log_p)))
        return true.ravel(), given.ravel()

    def spread(self, values: Singles) -> Singles:
        """Give every entry its row's value; values (N,)."""
        return values

    def by_class(self, values: Singles) -> Singles:
        """Give every entry its class's value; values (C,)."""
        return values[:, None]

    def class_sum(self, entries: Singles) -> Floats:
        """Sum over the rows of each class: (C,)."""
        return (entries @ np.ones(entries.shape[1], dtype=np.float32)).astype(np.float64)

    def pair_sum(self, entries: Singles) -> Floats:
        """Sum over the rows of each pair: (C * C,)."""
        size = len(entries)
        return np.concatenate([weighted_count(self.label, row, size) for row in entries])

    def outer(self, entries: Singles) -> Floats:
        """(C, C) sums over rows of products of two classes' entries."""
        return (entries @ entries.T).astype(np.float64)

    def products(self, entries: Singles) -> Any:
        """Sums over rows of products of two classes' entries, as a sparse (C, C) matrix."""
        return sparse.csr_array(self.outer(entries))

    def rest(self, power: float) -> tuple[Singles | float, Singles | float]:
        """Mass of the classes that are not entries, to a power, and their log probability."""
        return 0.0, 0.0

    def take(self, count: int) -> "Dense":
        """Keep the first rows."""
        return Dense(self.label[:count], np.ascontiguousarray(self.log_p[:, :count]))


Layout = Dense | Sparse


def lay_out(label: Ints, probs: Probs) -> Layout:
    """Arrange the rows of one block for the fit; label (N,), probs (N, C)."""
    if probs.shape[1] <= DENSE_CLASSES:
        log_p = _floored(probs)
        np.log(log_p, out=log_p)
        log_p -= log_p.max(axis=0)
        return Dense(label, log_p)
    return sparse_rows(label, np.ascontiguousarray(probs, dtype=np.float32))


def powered(label: Ints, probs: Probs, power: float) -> tuple[DenseRows | Sparse, Singles, Singles]:
    """Arrange the rows of one block for scoring; label (N,), probs (N, C).

    Returns:
        The rows (of sparse ones `log_p` is used up), their entries to a power (the row's largest is
        one), and (N,) the logarithm of the given label's, which may be too small to be a number.
    """
    if probs.shape[1] <= DENSE_CLASSES:
        rows, entries = DenseRows(label), _floored(probs)
        entries /= entries.max(axis=0)
        log_given = np.log(rows.of_given(entries))
        log_given *= np.float32(power)
        return rows, to_power(entries, power), log_given
    layout = sparse_rows(label, np.ascontiguousarray(probs, dtype=np.float32))
    log_entries = np.multiply(layout.log_p, np.float32(power), out=layout.log_p)
    log_given = layout.of_given(log_entries)
    return layout, np.exp(log_entries, out=log_entries), log_given


def _floored(probs: Probs) -> Singles:
    """(C, N) probabilities of at least the floor; probs (N, C)."""
    values = probs.T.astype(np.float32, order="C")
    # A row of floors, not a number: NumPy's maximum of arrays is three times as fast.
    floor = np.full(len(probs), log_floor(probs.shape[1]))
    return np.maximum(values, floor, out=values)


def gather(label: Ints, probs: Probs, rows: Ints) -> Layout:
    """Arrange chosen rows for the fit, reading a few at a time; rows (n,) in any order."""
    size = probs.shape[1]
    if size <= DENSE_CLASSES:
        return lay_out(label[rows], probs[rows])
    step = tile_rows(size)
    parts: list[Sparse] = []
    for begin in range(0, len(rows), step):
        chosen = rows[begin : begin + step]
        parts.append(sparse_rows(label[chosen], np.asarray(probs[chosen], dtype=np.float32)))
    entries = np.cumsum([0] + [len(part.row) for part in parts])
    before = np.cumsum([0] + [len(part.label) for part in parts])
    moved = [
        replace(p, row=p.row + n, start=p.start + e, at_given=p.at_given + e)
        for p, n, e in zip(parts, before[:-1], entries[:-1], strict=True)
    ]
    names = ("label", "row", "column", "start", "at_given", "log_p", "rest_count", "rest_log")
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(p, name) for p in moved]) for name in names
    }
    return with_pairs(replace(parts[0], **joined))
