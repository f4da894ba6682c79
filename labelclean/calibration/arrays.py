"""The arrays of the judge: their types, and how many rows are handled at a time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def tile_rows(num_classes: int) -> int:
    """Rows that are handled together, so that a tile stays in the processor's cache."""
    return max(LEAST_TILE_ROWS, min(TILE_ROWS, TILE_NUMBERS // num_classes))
