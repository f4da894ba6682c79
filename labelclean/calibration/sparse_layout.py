"""The layout of evidence about many classes: only the probable ones of every row are kept."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from labelclean.arrays import Floats, Ints, Singles
from labelclean.calibration.arrays import least_kept, log_floor, weighted_count


@dataclass(frozen=True, slots=True)
class Sparse:
    """The probable classes of every row: entries are arrays of shape (M,), by row.

    Args:
        label: (N,) given label.
        size: Number of classes C.
        row: (M,) row of an entry.
        column: (M,) class of an entry.
        start: (N,) first entry of every row.
        at_given: (N,) entry of the given label of every row.
        log_p: (M,) log probability, the row's largest is zero.
        rest_count: (N,) number of classes that are not entries.
        rest_log: (N,) their mean log probability on the same scale.
        pair_true, pair_given: (P,) the distinct pairs (class, given label).
        pair: (M,) position of an entry's pair in those.
    """

    label: Ints
    size: int
    row: Ints
    column: Ints
    start: Ints
    at_given: Ints
    log_p: Singles
    rest_count: Singles
    rest_log: Singles
    pair_true: Ints
    pair_given: Ints
    pair: Ints

    @property
    def given(self) -> Ints:
        """Index of the given label's entry of every row."""
        return self.at_given

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """(true class, given label) of every pair, each (P,)."""
        return self.pair_true, self.pair_given

    def spread(self, values: Singles) -> Singles:
        """Give every entry its row's value; values (N,)."""
        return values[self.row]

    def by_class(self, values: Singles) -> Singles:
        """Give every entry its class's value; values (C,)."""
        return values[self.column]

    def of_given(self, entries: Singles) -> Singles:
        """Entry of the given label of each row: (N,)."""
        return entries[self.at_given]

    def row_sum(self, entries: Singles) -> Singles:
        """Sum over the classes of each row: (N,)."""
        return np.add.reduceat(entries, self.start)

    def row_max(self, entries: Singles) -> Singles:
        """Largest entry of each row: (N,)."""
        return np.maximum.reduceat(entries, self.start)

    def class_sum(self, entries: Singles) -> Floats:
        """Sum over the rows of each class: (C,)."""
        return weighted_count(self.column, entries, self.size)

    def pair_sum(self, entries: Singles) -> Floats:
        """Sum over the rows of each pair: (P,)."""
        return weighted_count(self.pair, entries, len(self.pair_true))

    def from_pairs(self, values: Singles) -> Singles:
        """Give every entry the value of its pair (class, given label); values (P,)."""
        return values[self.pair]

    def look_up(self, at: Callable[[Ints, Ints], Singles]) -> Singles:
        """Give every entry a value that depends on its class and the given label."""
        return at(self.column, self.label[self.row])

    def best_class(self, entries: Singles, rows: Ints) -> tuple[Singles, Ints]:
        """Largest entry and its class in the chosen rows; rows (n,) rising."""
        top = np.full(len(self.label), np.inf, dtype=np.float32)
        top[rows] = self.row_max(entries)[rows]
        hit = np.flatnonzero(entries == top[self.row])
        first = hit[np.diff(self.row[hit], prepend=-1) != 0]
        return top[rows], self.column[first]

    def outer(self, entries: Singles) -> Floats | None:
        """Products of classes are not kept: (C, C) may be too large to hold or to solve."""
        return None

    def products(self, entries: Singles) -> Any:
        """Sums over rows of products of two classes' entries, as a sparse (C, C) matrix."""
        shape = (len(self.label), self.size)
        table = sparse.csr_array((entries, (self.row, self.column)), shape=shape)
        return sparse.csr_array(table.T @ table)

    def rest(self, power: float) -> tuple[Singles | float, Singles | float]:
        """Mass of the classes that are not entries, to a power, and their log probability."""
        return self.rest_count * np.exp(np.float32(power) * self.rest_log), self.rest_log

    def take(self, count: int) -> "Sparse":
        """Keep the first rows; pairs that no longer occur stay as empty pairs."""
        if count >= len(self.label):
            return self
        end = int(self.start[count])
        cut = {name: getattr(self, name)[:end] for name in ("row", "column", "log_p", "pair")}
        rows = ("label", "start", "at_given", "rest_count", "rest_log")
        return replace(self, **cut, **{name: getattr(self, name)[:count] for name in rows})


def sparse_rows(label: Ints, probs: Singles) -> Sparse:
    """Arrange the rows of one block, their pairs not numbered yet; label (N,), probs (N, C)."""
    count, size = probs.shape
    rows = np.arange(count)
    keep = probs > least_kept()
    weak = np.flatnonzero(~keep.any(axis=1))
    if len(weak):
        keep[weak, probs[weak].argmax(axis=1)] = True
    keep[rows, label] = True
    flat = np.flatnonzero(keep)
    row = flat // size
    column = flat - row * size
    counts = np.bincount(row, minlength=count)
    start = np.cumsum(counts) - counts
    floor = log_floor(size)
    kept = probs.ravel()[flat]
    rest_count = np.float32(size) - counts.astype(np.float32)
    rest = np.maximum(1 - np.add.reduceat(kept, start), 0) / np.maximum(rest_count, 1)
    peak = np.log(np.maximum(np.maximum.reduceat(kept, start), floor))
    none = np.zeros(0, dtype=np.int64)
    return Sparse(
        label, size, row, column, start, np.searchsorted(flat, rows * size + label),
        np.log(np.maximum(kept, floor)) - peak[row], rest_count,
        np.log(np.maximum(rest, floor)) - peak, none, none, none,
    )  # fmt: skip


def with_pairs(part: Sparse) -> Sparse:
    """Number the distinct pairs (class, given label) of the entries."""
    keys, pair = np.unique(part.column * part.size + part.label[part.row], return_inverse=True)
    return replace(part, pair_true=keys // part.size, pair_given=keys % part.size, pair=pair)
