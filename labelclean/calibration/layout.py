"""Two layouts of (rows x classes) evidence behind one set of sums.

The transition fit needs sums over the classes of a row, over the rows of a class and over pairs
(true class, given label). With few classes the evidence is a dense array; with many, almost every
probability is tiny, and only classes above 1/64 (so at most 64 a row), the most probable class and
the given label are kept. The remainder keeps its share of the row but is never called the truth.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float32]
Probs = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Sums = NDArray[np.float64]

DENSE_CLASSES = 64
TILE_ROWS, LEAST_TILE_ROWS, TILE_NUMBERS = 16384, 16, 1 << 18


def least_kept() -> np.float32:
    """Give the probability above which a class of many is kept: at most 64 a row can be."""
    return np.float32(1 / DENSE_CLASSES)


def weighted_count(at: Ints, weight: Probs, size: int) -> Sums:
    """(size,) sums of the weights that share a position."""
    # NumPy's stubs call the answer integers whether or not there are weights.
    return np.asarray(np.bincount(at, weight, size), dtype=np.float64)


def log_floor(num_classes: int) -> np.float32:
    """Give the smallest probability the fit believes in."""
    return np.float32(1e-4 / num_classes)


@dataclass(frozen=True, slots=True)
class Dense:
    """All classes of every row: entries are arrays of shape (C, N).

    Args:
        label: (N,) given label.
        log_p: (C, N) log probability, the row's largest is zero.
    """

    label: Ints
    log_p: Floats

    @property
    def given(self) -> tuple[Ints, Ints]:
        """Index of the given label's entry of every row."""
        return self.label, np.arange(len(self.label))

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """(true class, given label) of every pair, each (C * C,)."""
        true, given = np.indices((len(self.log_p), len(self.log_p)))
        return true.ravel(), given.ravel()

    def spread(self, values: Floats) -> Floats:
        """Give every entry its row's value; values (N,)."""
        return values

    def by_class(self, values: Floats) -> Floats:
        """Give every entry its class's value; values (C,)."""
        return values[:, None]

    def row_sum(self, entries: Floats) -> Floats:
        """Sum over the classes of each row: (N,)."""
        total: Floats = np.add.reduce(entries, axis=0)
        return total

    def row_max(self, entries: Floats) -> Floats:
        """Largest entry of each row: (N,)."""
        top: Floats = np.maximum.reduce(entries, axis=0)
        return top

    def class_sum(self, entries: Floats) -> Sums:
        """Sum over the rows of each class: (C,)."""
        total: Sums = entries.sum(axis=1, dtype=np.float64)
        return total

    def pair_sum(self, entries: Floats) -> Sums:
        """Sum over the rows of each pair: (C * C,)."""
        size = len(entries)
        return np.concatenate([weighted_count(self.label, row, size) for row in entries])

    def from_pairs(self, values: Floats) -> Floats:
        """Give every entry the value of its pair (class, given label); values (C * C,)."""
        size = len(self.log_p)
        return np.take(values.reshape(size, size), self.label, axis=1, mode="clip")

    def look_up(self, at: Callable[[Ints, Ints], Floats]) -> Floats:
        """Give every entry a value that depends on its class and the given label."""
        true, given = self.pairs
        return self.from_pairs(at(true, given))

    def best_class(self, entries: Floats, rows: Bools) -> Ints:
        """Class of the largest entry of the chosen rows; rows (N,)."""
        best: Ints = entries[:, rows].argmax(axis=0)
        return best

    def outer(self, entries: Floats) -> Sums:
        """(C, C) sums over rows of products of two classes' entries."""
        return (entries @ entries.T).astype(np.float64)

    def products(self, entries: Floats) -> Any:
        """Sums over rows of products of two classes' entries, as a sparse (C, C) matrix."""
        return sparse.csr_array(self.outer(entries))

    def rest(self, power: float) -> tuple[Floats | float, Floats | float]:
        """Mass of the classes that are not entries, to a power, and their log probability."""
        return 0.0, 0.0

    def take(self, count: int) -> "Dense":
        """Keep the first rows."""
        return Dense(self.label[:count], np.ascontiguousarray(self.log_p[:, :count]))


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
    log_p: Floats
    rest_count: Floats
    rest_log: Floats
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

    def spread(self, values: Floats) -> Floats:
        """Give every entry its row's value; values (N,)."""
        return values[self.row]

    def by_class(self, values: Floats) -> Floats:
        """Give every entry its class's value; values (C,)."""
        return values[self.column]

    def row_sum(self, entries: Floats) -> Floats:
        """Sum over the classes of each row: (N,)."""
        return np.add.reduceat(entries, self.start)

    def row_max(self, entries: Floats) -> Floats:
        """Largest entry of each row: (N,)."""
        return np.maximum.reduceat(entries, self.start)

    def class_sum(self, entries: Floats) -> Sums:
        """Sum over the rows of each class: (C,)."""
        return weighted_count(self.column, entries, self.size)

    def pair_sum(self, entries: Floats) -> Sums:
        """Sum over the rows of each pair: (P,)."""
        return weighted_count(self.pair, entries, len(self.pair_true))

    def from_pairs(self, values: Floats) -> Floats:
        """Give every entry the value of its pair (class, given label); values (P,)."""
        return values[self.pair]

    def look_up(self, at: Callable[[Ints, Ints], Floats]) -> Floats:
        """Give every entry a value that depends on its class and the given label."""
        return at(self.column, self.label[self.row])

    def best_class(self, entries: Floats, rows: Bools) -> Ints:
        """Class of the largest entry of the chosen rows; rows (N,)."""
        top = np.where(rows, self.row_max(entries), np.float32(np.inf))
        hit = np.flatnonzero(entries == top[self.row])
        first = hit[np.diff(self.row[hit], prepend=-1) != 0]
        best: Ints = self.column[first]
        return best

    def outer(self, entries: Floats) -> Sums | None:
        """Products of classes are not kept: (C, C) may be too large to hold or to solve."""
        return None

    def products(self, entries: Floats) -> Any:
        """Sums over rows of products of two classes' entries, as a sparse (C, C) matrix."""
        shape = (len(self.label), self.size)
        table = sparse.csr_array((entries, (self.row, self.column)), shape=shape)
        return sparse.csr_array(table.T @ table)

    def rest(self, power: float) -> tuple[Floats | float, Floats | float]:
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


Layout = Dense | Sparse


def lay_out(label: Ints, probs: Probs, centred: bool = True) -> Layout:
    """Arrange the rows of one block; label (N,), probs (N, C); not centred: log_p as it is."""
    if probs.shape[1] <= DENSE_CLASSES:
        log_p = probs.T.astype(np.float32, order="C")
        np.maximum(log_p, log_floor(probs.shape[1]), out=log_p)
        np.log(log_p, out=log_p)
        if centred:
            log_p -= log_p.max(axis=0)
        return Dense(label, log_p)
    return _sparse(label, np.ascontiguousarray(probs, dtype=np.float32))


def gather(label: Ints, probs: Probs, rows: Ints) -> Layout:
    """Arrange chosen rows for the fit, reading a few at a time; rows (n,) in any order."""
    size = probs.shape[1]
    if size <= DENSE_CLASSES:
        return lay_out(label[rows], probs[rows])
    step = tile_rows(size)
    parts: list[Sparse] = []
    for begin in range(0, len(rows), step):
        chosen = rows[begin : begin + step]
        parts.append(_sparse(label[chosen], np.asarray(probs[chosen], dtype=np.float32)))
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
    return _with_pairs(replace(parts[0], **joined))


def tile_rows(num_classes: int) -> int:
    """Rows that are handled together, so that a tile stays in the processor's cache."""
    return max(LEAST_TILE_ROWS, min(TILE_ROWS, TILE_NUMBERS // num_classes))


def _sparse(label: Ints, probs: Floats) -> Sparse:
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


def _with_pairs(part: Sparse) -> Sparse:
    """Number the distinct pairs (class, given label) of the entries."""
    keys, pair = np.unique(part.column * part.size + part.label[part.row], return_inverse=True)
    return replace(part, pair_true=keys // part.size, pair_given=keys % part.size, pair=pair)
