"""Log-odds that labels are wrong by a pool of class posteriors and a matrix of other folds."""

import numpy as np
from scipy.special import ndtri

from labelclean.arrays import Bools, Floats, Ints, Probs, Singles
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.fit import choose_rows
from labelclean.calibration.pattern import cross_fitted, fit_pattern, start_matrix

PATTERN_CLASSES = 1000  # of more, flips are taken to be even: too few rows speak for a pair
_BLOCK_NUMBERS = 1 << 22  # numbers held at a time: 32 MB


def free_rows(count: int, verified: Bools | None) -> Ints:
    """Give the rows to estimate on: a sample of very many, and none that people vouched for."""
    rows = np.sort(choose_rows(count))
    if verified is None or verified[rows].all():
        return rows
    return rows[~verified[rows]]


def fold_tables(label: Ints, probs: Probs, fold: Ints, share: float) -> Floats:
    """(K, C, C) the matrix each fold is judged by; of many classes one for all."""
    start = start_matrix(probs.shape[1])
    if probs.shape[1] > PATTERN_CLASSES:
        return fit_pattern(label, probs, share, start)[None]
    return cross_fitted(label, probs, fold, share, start)


def none_mass(distance: Singles | None, share: float, tables: Floats) -> Floats | None:
    """(N,) what speaks for "none of these": the farther from all classes, the more."""
    if distance is None or share == 0:
        return None
    size, count = tables.shape[1], len(distance)
    flips = 1 - float(np.mean(np.diagonal(tables, axis1=1, axis2=2)))
    _, place, ties = np.unique(distance, return_inverse=True, return_counts=True)
    rank = (np.cumsum(ties) - (ties - 1) / 2)[place]
    far = ndtri((rank - 0.5) / count)
    one = judge_constants().none_mass * share * flips / max(size - 1, 1)
    mass: Floats = one * np.exp(far)
    return mass


def error_odds(
    label: Ints,
    probs: Singles,
    fold: Ints,
    tables: Floats,
    none: Floats | None,
    exponent: float = 1.0,
) -> tuple[Floats, Ints, Floats, Floats]:
    """Give log-odds of an error, the likeliest other class, its share of all, the share of none."""
    count, size = probs.shape
    odds, share, stays = np.empty((3, count))
    rival = np.empty(count, np.int64)
    columns = np.ascontiguousarray(tables.transpose(0, 2, 1))
    step = max(1, _BLOCK_NUMBERS // size)
    for begin in range(0, count, step):
        part = slice(begin, begin + step)
        given, rows = label[part], np.arange(len(label[part]))
        joint = probs[part].astype(np.float64) + 1e-12
        if exponent != 1:
            joint **= exponent
        joint *= columns[fold[part] % len(columns), given]
        own = joint[rows, given].copy()
        joint[rows, given] = 0
        other = joint.sum(axis=1)
        best = joint.argmax(axis=1)
        lost = 0.0 if none is None else none[part]
        against = other + lost + 1e-30
        odds[part] = np.log(against) - np.log(own + 1e-30)
        rival[part], share[part] = best, joint[rows, best] / (other + 1e-30)
        stays[part] = lost / against
    return odds, rival, share, stays
