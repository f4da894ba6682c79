"""Rows that show the same picture: candidates by thumbnails, likeness after alignment, groups.

Copies come re-encoded, scaled, cropped by a few per cent or mirrored. A thumbnail survives the
first two as it is. Its even part and the size of its odd part survive mirroring, so the nearest
rows in these are the candidates, of mirrored copies too. A crop shifts and stretches, so two
pictures are compared under small windows of either, and the best correlation counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from labelclean.arrays import Bools, Floats, Ints, Singles
from labelclean.evidence.folds import some_rows
from labelclean.evidence.neighbours import EXACT_ROWS, nearest_rows

_CANDIDATES = 5  # nearest rows that are compared; larger groups hang together by them
PLAUSIBLE = 0.55  # correlation of thumbnails as they are: a cropped copy keeps at least so much
LIKELY = 0.7  # of their detail after alignment: worth a look at the pixels
SAME = 0.86  # of the detail of pixels after alignment: the same picture
STANDS_OUT = 3.5  # deviations above what is usual among rows that are no copies
SLOW = 12  # what changes over more than this part of a side is no detail
_LEAST_CONTRAST = 2.0  # standard deviation of grey below which there is nothing to compare
CROPPED = ((0.95, 5), (0.975, 3))  # share of a side that a copy may have kept, places to look at
_USUAL_ROWS = 512
_BLOCK = 256  # pairs compared at a time

Compare = Callable[[Ints, Bools], Floats]
"""(P, 2) pairs of rows, (P,) whether the second is mirrored -> (P,) likeness of their pixels."""


@dataclass(frozen=True, slots=True)
class DuplicateGroups:
    """Groups of rows that show the same picture; d rows are in one.

    Args:
        row: (d,) rows of the manifest, rising.
        group: (d,) number of the group, from 0 in the order of the first rows.
        exact: (d,) whether another row has the very same content.
    """

    row: Ints
    group: Ints
    exact: Bools

    def members(self) -> list[Ints]:
        """Give the rows of each group."""
        order = np.argsort(self.group, kind="stable")
        edges = np.flatnonzero(np.diff(self.group[order])) + 1
        return [part for part in np.split(self.row[order], edges) if len(part)]

    def of_rows(self, count: int) -> Ints:
        """(count,) the group of every row of the manifest; -1: none."""
        found = np.full(count, -1)
        found[self.row] = self.group
        return found

    def conflicts(self, label: Ints) -> Ints:
        """Give the rows of groups that do not all carry one label; label (N,)."""
        low, high = self._range(label)
        return self.row[(low != high)[self.group]] if len(self.row) else self.row

    def leaks(self, split: NDArray[np.object_] | None, count: int) -> Ints:
        """(count,) for every row the first row of its group that is of another split; -1: none."""
        found = np.full(count, -1)
        if split is None or not len(self.row):
            return found
        names = np.unique(split.astype(str), return_inverse=True)[1]
        low, high = self._range(names)
        astray = (low != high)[self.group]
        for rows in DuplicateGroups(
            self.row[astray], self.group[astray], self.exact[astray]
        ).members():
            for row in rows:
                found[row] = rows[names[rows] != names[row]][0]
        return found

    def _range(self, code: Ints) -> tuple[Ints, Ints]:
        """Give the least and the largest code of each group; code (N,)."""
        size = int(self.group.max(initial=-1)) + 1
        low, high = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
        np.minimum.at(low, self.group, code[self.row])
        np.maximum.at(high, self.group, code[self.row])
        return low, high


def no_duplicates() -> DuplicateGroups:
    """Give the groups of a manifest in which no row shows what another shows."""
    return DuplicateGroups(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool))


def group_duplicates(
    identical: Sequence[Ints],
    readable: Bools,
    thumbnail: NDArray[np.uint8] | None,
    compare: Compare | None,
) -> DuplicateGroups:
    """Group rows of the same content, and rows whose pixels are alike after alignment.

    Args:
        identical: Groups of rows of the same content.
        readable: (N,) rows that can be compared.
        thumbnail: (N, S, S) grey; None: there are no pictures, content alone counts.
        compare: Compares pixels; None: as above.
    """
    count = len(readable)
    first = np.arange(count)
    exact = np.zeros(count, bool)
    for rows in identical:
        first[rows], exact[rows] = rows[0], True
    pairs = np.stack([first, np.arange(count)], axis=1)[first != np.arange(count)]
    if thumbnail is not None and compare is not None:
        one_of_each = np.flatnonzero(readable & (first == np.arange(count)))
        asked, mirrored, least = likely_pairs(thumbnail, one_of_each)
        if len(asked):
            asked = asked[compare(asked, mirrored) >= least]
        pairs = np.concatenate([pairs, asked])
    if not len(pairs):
        return no_duplicates()
    linked = sparse.coo_array((np.ones(len(pairs), bool), pairs.T), (count, count))
    part = connected_components(linked, directed=False)[1]
    row = np.flatnonzero(np.bincount(part)[part] > 1)
    _, start, number = np.unique(part[row], return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(start))
    return DuplicateGroups(row, order[number].astype(np.int64), exact[row])


def likely_pairs(thumbnail: NDArray[np.uint8], rows: Ints) -> tuple[Ints, Bools, float]:
    """Find pairs of rows that are worth a look at their pixels.

    Exact for up to EXACT_ROWS rows; the work for each row is bounded whatever their number.

    Args:
        thumbnail: (N, S, S) grey.
        rows: Rows to compare with each other.

    Returns:
        (P, 2) pairs of rows, (P,) whether the second one is mirrored, and how alike their pixels
        must be.
    """
    rows = rows[thumbnail[rows].std(axis=(1, 2)) >= _LEAST_CONTRAST]
    if len(rows) < 2:
        return np.zeros((0, 2), np.int64), np.zeros(0, bool), SAME
    near, _ = nearest_rows(_mirror_free(thumbnail[rows]), _CANDIDATES)
    asking = np.repeat(np.arange(len(rows)), near.shape[1])
    pairs = np.stack([np.minimum(asking, near.ravel()), np.maximum(asking, near.ravel())], axis=1)
    pairs = rows[np.unique(pairs, axis=0)]
    kept, turned = [pairs[:0]], [np.zeros(0, bool)]
    for begin in range(0, len(pairs), _BLOCK):
        part = pairs[begin : begin + _BLOCK]
        plausible, mirrored, likeness = _thumbnail_likeness(thumbnail, part)
        likely = plausible & (likeness >= LIKELY)
        kept.append(part[likely])
        turned.append(mirrored[likely])
    some = some_rows(len(rows), _USUAL_ROWS)
    _, _, usual = _thumbnail_likeness(
        thumbnail, np.stack([rows[some], rows[near[some, -1]]], 1), -1
    )
    return np.concatenate(kept), np.concatenate(turned), _least_likeness(usual)


def _thumbnail_likeness(
    thumbnail: NDArray[np.uint8], pairs: Ints, plausible: float = PLAUSIBLE
) -> tuple[Bools, Bools, Floats]:
    """Give which pairs are plausible, which are mirrored, and how alike the plausible ones are."""
    one, other = (thumbnail[pairs[:, at]].astype(np.float32) for at in (0, 1))
    back = other[:, :, ::-1]
    plain, flipped = correlation(one, other), correlation(one, back)
    mirrored = flipped > plain
    enough = np.maximum(plain, flipped) >= plausible
    likeness = np.full(len(pairs), -1.0)
    turned = np.where(mirrored[enough, None, None], back[enough], other[enough])
    likeness[enough] = aligned_likeness(one[enough], turned)
    return enough, mirrored, likeness


def _least_likeness(usual: Floats) -> float:
    """Give how alike copies must be where rows and their last candidates (n,) are so alike.

    Small drawings, handwritten digits for example, are alike without being copies. What is usual
    is the median, in the scale in which correlations are normal; more than STANDS_OUT deviations
    above it is unusual.
    """
    normal = np.arctanh(np.clip(usual, -0.999, 0.999))
    middle = float(np.median(normal))
    width = 1.4826 * float(np.median(np.abs(normal - middle)))
    return max(SAME, float(np.tanh(middle + STANDS_OUT * width)))


def aligned_likeness(one: Singles, other: Singles) -> Floats:
    """(P,) correlation of the detail of (P, S, S) pictures where either is a window of the other.

    Slow changes of light are taken out first: horizons and skies are alike in many pictures. The
    window is looked for down, across, and down again.
    """
    one, other = _detail(one), _detail(other)
    best = correlation(one, other)
    windows = _windows(one.shape[1])
    middle = np.full(len(one), len(windows) - 2)
    for whole, part in ((one, other), (other, one)):
        across = middle
        for _ in range(2):
            wide = np.matmul(whole, windows[across].transpose(0, 2, 1))
            tried = _stretched_likeness(windows, wide, part)
            tall = np.matmul(windows[tried.argmax(axis=0)], whole)
            tried = _stretched_likeness(windows, tall.transpose(0, 2, 1), part.transpose(0, 2, 1))
            across = tried.argmax(axis=0)
            best = np.maximum(best, tried.max(axis=0))
    return best


def correlation(one: Singles, other: Singles) -> Floats:
    """(P,) correlation of the values of (P, S, S) pictures; 0 where one of them has no values."""
    size = one.shape[1] * one.shape[2]
    flat = [values.reshape(len(values), size) for values in (one, other)]
    left, right = (values - values.mean(axis=1, keepdims=True) for values in flat)
    length = np.sqrt(np.einsum("id,id->i", left, left) * np.einsum("id,id->i", right, right))
    found: Floats = np.einsum("id,id->i", left, right) / np.maximum(length, 1e-6)
    return found


def _stretched_likeness(windows: Singles, pictures: Singles, other: Singles) -> Floats:
    """(W, P) correlation of A X with Y, for each window A, picture X and other picture Y.

    None of the W times P stretched pictures is made: <A X, Y> = <A, Y X'>, |A X|^2 = <A'A, X X'>,
    and the sum of A X is that of A's columns times that of X's rows.
    """
    count, numbers = len(pictures), windows[0].size
    mixed = np.matmul(other, pictures.transpose(0, 2, 1)).reshape(count, numbers)
    gram = np.matmul(pictures, pictures.transpose(0, 2, 1)).reshape(count, numbers)
    squared = np.matmul(windows.transpose(0, 2, 1), windows)
    inner = (windows.reshape(-1, numbers) @ mixed.T).astype(np.float64)
    square = (squared.reshape(-1, numbers) @ gram.T).astype(np.float64)
    total = (windows.sum(axis=1) @ pictures.sum(axis=2).T).astype(np.float64)
    flat = other.reshape(count, numbers).astype(np.float64)
    own = flat.sum(axis=1)
    spread = np.einsum("id,id->i", flat, flat) - own**2 / numbers
    length = np.sqrt(np.maximum(square - total**2 / numbers, 0) * np.maximum(spread, 0))
    found: Floats = (inner - total * own / numbers) / np.maximum(length, 1e-6)
    return found


def _mirror_free(thumbnail: NDArray[np.uint8]) -> Singles:
    """(n, D) what mirroring does not change: the even part, and the size of the odd one."""
    side = thumbnail.shape[1]
    if len(thumbnail) > EXACT_ROWS:  # a quarter of the numbers: memory for millions of rows
        half = thumbnail.reshape(-1, side // 2, 2, side // 2, 2)
        thumbnail = half.mean(axis=(2, 4), dtype=np.float32).astype(np.uint8)
        side //= 2
    left = thumbnail[:, :, : side // 2].astype(np.float32)
    right = thumbnail[:, :, : side // 2 - 1 : -1].astype(np.float32)
    even = ((left + right) / 2).reshape(len(left), -1)
    even -= even.mean(axis=1, keepdims=True)
    return np.concatenate([even, np.abs(left - right).reshape(len(left), -1) / 2], axis=1)


def _detail(pictures: Singles) -> Singles:
    """Take out of (P, S, S) pictures what changes slowly: a Gaussian of a twelfth of the side."""
    side = pictures.shape[1]
    apart = np.arange(side)[:, None] - np.arange(side)
    blur = np.exp(-0.5 * (apart / (side / SLOW)) ** 2).astype(np.float32)
    blur /= blur.sum(axis=1, keepdims=True)
    detail: Singles = pictures - blur @ pictures @ blur.T
    return detail


def _windows(side: int) -> Singles:
    """(W, S, S) matrices that stretch a window of an axis over all of it; the first does nothing.

    The last but one is the middle of the axis.
    """
    spans = [(0.0, 1.0)]
    for width, steps in CROPPED:
        spans += [(low, low + width) for low in np.linspace(0, 1 - width, steps)]
    return np.stack([_stretch(low, high, side) for low, high in spans])


def _stretch(low: float, high: float, side: int) -> Singles:
    at = ((np.arange(side) + 0.5) / side * (high - low) + low) * side - 0.5
    at = np.clip(at, 0, side - 1)
    left = np.minimum(at.astype(np.int64), side - 2)
    matrix = np.zeros((side, side), np.float32)
    matrix[np.arange(side), left] = 1 - (at - left)
    matrix[np.arange(side), left + 1] += at - left
    return matrix
