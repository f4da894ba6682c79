"""The arrays of the judge: their types, and how many rows are handled at a time."""

import math

import numpy as np

from labelclean.arrays import Floats, Ints, Probs, Singles
from labelclean.calibration.constants import judge_constants

DENSE_CLASSES = 64
LEAST_ROOTS = 3  # a cheap power is a multiple of 1/8 or, below 4, of a smaller part
TILE_ROWS, LEAST_TILE_ROWS, TILE_NUMBERS = 16384, 16, 1 << 18


def least_kept() -> np.float32:
    """Give the probability above which a class of many is kept: at most 64 a row can be."""
    return np.float32(1 / DENSE_CLASSES)


def weighted_count(at: Ints, weight: Probs, size: int) -> Floats:
    """(size,) sums of the weights that share a position."""
    # NumPy's stubs call the answer integers whether or not there are weights.
    return np.asarray(np.bincount(at, weight, size), dtype=np.float64)


def log_floor(num_classes: int) -> np.float32:
    """Give the smallest probability the fit believes in."""
    return np.float32(judge_constants().floor / num_classes)


def tile_rows(num_classes: int) -> int:
    """Rows that are handled together, so that a tile stays in the processor's cache."""
    return max(LEAST_TILE_ROWS, min(TILE_ROWS, TILE_NUMBERS // num_classes))


def cheap_power(power: float) -> float:
    """Give the next higher power that `to_power` raises without a logarithm: up to 1/32 more."""
    steps = 1 << _roots(power)
    return math.ceil(power * steps) / steps


def _roots(power: float) -> int:
    """Give how many square roots a cheap power may take: the smaller it is, the more."""
    return max(LEAST_ROOTS, 5 - math.floor(math.log2(power)))


def to_power(base: Singles, power: float) -> Singles:
    """Give base ** power; base holds numbers above 0 and up to 1 and is used up.

    A cheap power takes square roots and multiplications alone, a third of the time of exponentials
    of logarithms, and its values are held at the smallest normal numbers.
    """
    if power != cheap_power(power):
        np.log(base, out=base)
        base *= np.float32(power)
        return np.exp(base, out=base)
    least = (2 * np.finfo(np.float32).tiny.item()) ** (1 / power)
    np.maximum(base, np.full(base.shape[-1], least, dtype=np.float32), out=base)
    roots = _roots(power)
    whole = round(power * (1 << roots))
    while roots and whole % 2 == 0:
        whole, roots = whole // 2, roots - 1
    for _ in range(roots):
        np.sqrt(base, out=base)
    answer = None
    while whole > 1:
        if whole % 2:
            answer = base.copy() if answer is None else np.multiply(answer, base, out=answer)
        np.multiply(base, base, out=base)
        whole //= 2
    return base if answer is None else np.multiply(answer, base, out=answer)
