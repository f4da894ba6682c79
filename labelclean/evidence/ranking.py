"""From suspicion to a ranking, ties included."""

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Ints

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
