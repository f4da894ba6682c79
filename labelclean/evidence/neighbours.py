"""Evidence from the nearest rows in feature space; in blocks, memory bounded."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from labelclean.arrays import Floats, Ints
from labelclean.calibration.constants import judge_constants
from labelclean.evidence.cells import cells_around

EXACT_ROWS = 1 << 16
"""Up to so many rows every row is compared with every other; beyond, with those around it."""
_BLOCK_NUMBERS = 1 << 21  # similarities held at a time: 8 MB, and 16 MB of places
_VOTES = 1 << 22  # votes held at a time: 32 MB


def unit_rows(features: NDArray[np.floating]) -> NDArray[np.float32]:
    """Scale rows to length one after centring; a row of zeros stays zero."""
    centred = features.astype(np.float32)
    centred -= centred.mean(axis=0)
    length = np.sqrt(np.einsum("id,id->i", centred, centred))
    centred /= np.where(length > 0, length, 1)[:, None]
    return centred


def nearest_rows(
    features: NDArray[np.floating], k: int, asked: Ints | None = None
) -> tuple[Ints, NDArray[np.float32]]:
    """Give the k most similar other rows of some rows, and their cosine similarity.

    Exact for up to EXACT_ROWS rows; beyond, the most similar of the thousands of rows in the cells
    around a row. In blocks of rows; equally similar rows come in row order.

    Args:
        features: (N, D).
        k: How many.
        asked: (n,) rows whose neighbours are wanted; None: all.

    Returns:
        (n, k) rows, most similar first, and (n, k) similarities.
    """
    unit = unit_rows(features)
    count = len(unit)
    asked = np.arange(count) if asked is None else asked
    k = min(k, count - 1)
    rows = np.empty((len(asked), max(k, 0)), dtype=np.int64)
    similar = np.empty((len(asked), max(k, 0)), dtype=np.float32)
    if k < 1:
        return rows, similar
    every = np.arange(count)
    place = np.full(count, -1)
    place[asked] = np.arange(len(asked))
    for asking, around in [[asked, every]] if count <= EXACT_ROWS else cells_around(unit):
        others = unit if around is every else unit[around]
        wanted = asking[place[asking] >= 0]
        step = max(1, _BLOCK_NUMBERS // len(around))
        for begin in range(0, len(wanted), step):
            part = wanted[begin : begin + step]
            at = place[part]
            rows[at], similar[at] = _most_similar(unit, part, others, around, k)
    return rows, similar


def _most_similar(
    unit: NDArray[np.float32], part: Ints, others: NDArray[np.float32], around: Ints, k: int
) -> tuple[Ints, NDArray[np.float32]]:
    likeness = unit[part] @ others.T
    # A row is no neighbour of itself.
    own = np.minimum(np.searchsorted(around, part), len(around) - 1)
    here = np.flatnonzero(around[own] == part)
    likeness[here, own[here]] = -np.inf
    count = len(around)
    near = np.sort(np.argpartition(likeness, count - k, axis=1)[:, count - k :], axis=1)
    values = np.take_along_axis(likeness, near, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return around[np.take_along_axis(near, order, axis=1)], np.take_along_axis(
        values, order, axis=1
    )


def vote(rows: Ints, similar: NDArray[np.float32], shares: Floats) -> Floats:
    """(N, C) soft vote of the neighbours' class shares, nearer ones weighing more."""
    votes = np.zeros((len(rows), shares.shape[1]))
    heat = judge_constants().neighbour_temperature
    step = max(1, _VOTES // shares.shape[1])
    for begin in range(0, len(rows), step):
        part = slice(begin, begin + step)
        near, close = rows[part], similar[part]
        weight = np.exp((close - close.max(axis=1, keepdims=True)) / heat, dtype=np.float64)
        weight /= weight.sum(axis=1, keepdims=True)
        ends = np.arange(0, near.size + 1, near.shape[1])
        votes[part] = (
            sparse.csr_array((weight.ravel(), near.ravel(), ends), (len(near), len(shares)))
            @ shares
        )
    return votes


def disagreement(label: Ints, features: NDArray[np.floating]) -> Floats:
    """(N,) share of the neighbours' weighted vote that is not for the given label."""
    rows, similar = nearest_rows(features, judge_constants().neighbours)
    if not rows.shape[1]:
        return np.zeros(len(label))
    votes = vote(rows, similar, np.eye(int(label.max()) + 1)[label])
    return 1.0 - votes[np.arange(len(label)), label]


def duplicate_conflicts(
    label: Ints, features: NDArray[np.floating], likeness: float = 0.999, k: int = 8
) -> Floats:
    """(N,) share of a row's near-identical twins that carry another label; 0 without twins.

    Of two twins with two labels one must be wrong: certain evidence, but silent about most rows.
    """
    rows, similar = nearest_rows(features, k)
    if not rows.shape[1]:
        return np.zeros(len(label))
    twin = similar >= likeness
    other = twin & (label[rows] != label[:, None])
    share: Floats = other.sum(axis=1) / np.maximum(twin.sum(axis=1), 1)
    return share
