"""From suspicion to a ranking: ties, scales and the fusion of several signals."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from labelclean.arrays import Floats, Ints
from labelclean.errors import ConfigError, DataError

_TILE_ROWS = 16384  # so many are turned into keys at a time: they stay in the processor's cache


def most_suspect_first(suspicion: NDArray[np.floating], out: Ints | None = None) -> Ints:
    """(N,) rows by falling suspicion; equal ones in row order, rows without a value last.

    `out` (N,) takes the answer where it is given.
    """
    count = len(suspicion)
    order = np.empty(count, dtype=np.int64) if out is None else out
    if suspicion.dtype != np.float32 or count >= 1 << 32:
        order[:] = np.argsort(-np.where(np.isnan(suspicion), -np.inf, suspicion), kind="stable")
        return order
    # One sort of 64-bit keys (value, then row) is several times faster than a stable argsort.
    keys = order.view(np.uint64)
    for begin in range(0, count, _TILE_ROWS):
        part = suspicion[begin : begin + _TILE_ROWS]
        # Zero minus a value is never -0.0; flipping bits makes IEEE order that of unsigned
        # integers: all bits of negative numbers, the sign of the others.
        down = np.float32(0) - np.where(np.isnan(part), np.float32(-np.inf), part)
        bits = down.view(np.int32)
        bits ^= (bits >> 31) | np.int32(-(1 << 31))
        tile = keys[begin : begin + _TILE_ROWS]
        tile[:] = bits.view(np.uint32)
        tile <<= np.uint64(32)
        tile |= np.arange(begin, begin + len(part), dtype=np.uint64)
    keys.sort()
    keys &= np.uint64(0xFFFFFFFF)
    return order


def unit_ranks(suspicion: NDArray[np.floating]) -> Floats:
    """(N,) ranks scaled to [0, 1], 1 most suspect; ties share their mean rank, NaN stays NaN."""
    finite = ~np.isnan(suspicion)
    answer = np.full(len(suspicion), np.nan)
    count = int(finite.sum())
    if count:
        answer[finite] = (rankdata(suspicion[finite]) - 0.5) / count
    return answer


def fuse(signals: Mapping[str, NDArray[np.floating]], weights: Mapping[str, float]) -> Floats:
    """(N,) fused suspicion in [0, 1]: the weighted mean of the signals' ranks.

    Ranks make signals of different scales comparable; the weights come from evidence (planted
    flips). A row that lacks a signal is judged by the signals it has.
    """
    unknown = sorted(set(weights) - set(signals))
    if unknown:
        raise ConfigError(f"weights name signals that were not given: {', '.join(unknown)}.")
    used = {name: weight for name, weight in weights.items() if weight > 0}
    if not used:
        raise ConfigError("at least one signal needs a weight above zero.")
    sizes = {len(signals[name]) for name in used}
    if len(sizes) > 1:
        raise DataError(f"signals disagree on the number of rows: {sorted(sizes)}.")
    ranks = np.stack([unit_ranks(signals[name]) for name in used])
    share = np.where(np.isnan(ranks), 0.0, np.array(list(used.values()))[:, None])
    total = share.sum(axis=0)
    mean = (np.nan_to_num(ranks) * share).sum(axis=0) / np.maximum(total, 1e-12)
    return np.where(total > 0, mean, np.nan)
