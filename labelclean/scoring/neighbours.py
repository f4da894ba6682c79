"""Evidence from the nearest rows in feature space; exact, in blocks, memory bounded."""

import numpy as np
from numpy.typing import NDArray

from labelclean.scoring.probabilities import Floats, Ints

BLOCK_NUMBERS = 1 << 24  # distances held at a time: 64 MB


def unit_rows(features: NDArray[np.floating]) -> NDArray[np.float32]:
    """Scale rows to length one after centring; a row of zeros stays zero."""
    centred = features.astype(np.float32)
    centred -= centred.mean(axis=0)
    length = np.sqrt(np.einsum("id,id->i", centred, centred))
    centred /= np.where(length > 0, length, 1)[:, None]
    return centred


def nearest(
    features: NDArray[np.floating], k: int, asked: Ints | None = None
) -> tuple[Ints, NDArray[np.float32]]:
    """Give the k most similar other rows of some rows, and their cosine similarity.

    Exact, in blocks of rows; equally similar rows come in row order.

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
    step = max(1, BLOCK_NUMBERS // count)
    for begin in range(0, len(asked), step):
        own = asked[begin : begin + step]
        likeness = unit[own] @ unit.T
        likeness[np.arange(len(own)), own] = -np.inf
        near = np.sort(np.argpartition(likeness, count - k, axis=1)[:, count - k :], axis=1)
        values = np.take_along_axis(likeness, near, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        rows[begin : begin + step] = np.take_along_axis(near, order, axis=1)
        similar[begin : begin + step] = np.take_along_axis(values, order, axis=1)
    return rows, similar


def vote(rows: Ints, similar: NDArray[np.float32], shares: Floats, heat: float = 0.05) -> Floats:
    """(N, C) soft vote of the neighbours' class shares, nearer ones weighing more."""
    weight = np.exp((similar - similar.max(axis=1, keepdims=True)) / heat, dtype=np.float64)
    weight /= weight.sum(axis=1, keepdims=True)
    votes = np.zeros((len(rows), shares.shape[1]))
    for i in range(rows.shape[1]):
        votes += weight[:, i, None] * shares[rows[:, i]]
    return votes


def disagreement(
    label: Ints, features: NDArray[np.floating], k: int = 50, heat: float = 0.05
) -> Floats:
    """(N,) share of the neighbours' weighted vote that is not for the given label."""
    rows, similar = nearest(features, k)
    if not rows.shape[1]:
        return np.zeros(len(label))
    votes = vote(rows, similar, np.eye(int(label.max()) + 1)[label], heat)
    return 1.0 - votes[np.arange(len(label)), label]


def duplicate_conflicts(
    label: Ints, features: NDArray[np.floating], likeness: float = 0.999, k: int = 8
) -> Floats:
    """(N,) share of a row's near-identical twins that carry another label; 0 without twins.

    Of two twins with two labels one must be wrong: certain evidence, but silent about most rows.
    """
    rows, similar = nearest(features, k)
    if not rows.shape[1]:
        return np.zeros(len(label))
    twin = similar >= likeness
    other = twin & (label[rows] != label[:, None])
    share: Floats = other.sum(axis=1) / np.maximum(twin.sum(axis=1), 1)
    return share
