"""Apply a fitted noise model to every row: log-odds of an error and the likeliest true class."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Ints, Probs, Singles
from labelclean.calibration.arrays import DENSE_CLASSES, tile_rows
from labelclean.calibration.layout import DenseRows, powered
from labelclean.calibration.noise_parameters import NoiseParameters
from labelclean.calibration.sparse_layout import Sparse


@dataclass(frozen=True, slots=True)
class Posterior:
    """What the fitted model says about each of N rows.

    Args:
        log_odds: (N,) float32, log of P(given label wrong) / P(given label right).
        p_error: (N,) float32, probability that the given label is wrong.
        suggested: (N,) int64, the most probable true class.
        moved: (M,) int64, the rows where that is not the given label, rising.
        p_moved: (M,) float32, the probability of what is suggested there.
    """

    log_odds: NDArray[np.float32]
    p_error: NDArray[np.float32]
    suggested: Ints
    moved: Ints
    p_moved: NDArray[np.float32]


def sigmoid(values: Singles, out: Singles | None = None) -> Singles:
    """1 / (1 + exp(-v)) in single precision.

    scipy's expit takes 3.5 ms for a million values, this 0.8, and 16 % of its last bits differ.
    """
    odds = np.negative(values, out=out)
    with np.errstate(over="ignore"):  # exp(100) is infinite and 1 / infinity the right 0
        np.exp(odds, out=odds)
    odds += np.float32(1)
    return np.divide(np.float32(1), odds, out=odds)


def score(
    label: Ints, probs: Probs, *models: NoiseParameters, rows: Ints | None = None
) -> Posterior:
    """Apply a fitted model, a tile at a time; memory does not grow with N x C.

    Args:
        label: (N,) given labels.
        probs: (N, C) probabilities; may be memory-mapped.
        models: The model; of several, the normalised geometric mean of their answers is given.
        rows: (n,) the rows to score; default: all.
    """
    suggested = label.copy() if rows is None else label[rows]
    count, size = len(suggested), probs.shape[1]
    inverse_temperature = float(np.mean([params.inverse_temperature for params in models]))
    bias = np.mean([params.bias for params in models], axis=0).astype(np.float32)
    flips = _geometric_mean([params.transition.lookup() for params in models])
    weigh, honest = _flips(flips, bias)
    log_odds, p_error = np.empty((2, count), dtype=np.float32)
    moved, p_moved = [], []
    step = tile_rows(size)
    for begin in range(0, count, step):
        tile = slice(begin, begin + step)
        given = suggested[tile]
        chosen = probs[tile if rows is None else rows[tile]]
        # The given label's part stays a logarithm: the most suspect rows would all underflow.
        layout, joint, log_given = powered(given, chosen, inverse_temperature)
        log_given += honest[given]
        joint *= weigh(layout)
        others = np.maximum(layout.row_sum(joint), np.float32(1e-37))
        odds = np.subtract(np.log(others), log_given, out=log_odds[tile])
        sigmoid(odds, p_error[tile])
        # No other class can win where all together do not.
        at = np.flatnonzero(odds > 0)
        top, best = layout.best_class(joint, at)
        own = np.exp(log_given[at])
        wins = top > own
        given[at[wins]] = best[wins]
        moved.append(begin + at[wins])
        p_moved.append((top / (others[at] + own))[wins])
    return Posterior(log_odds, p_error, suggested, np.concatenate(moved), np.concatenate(p_moved))


def _flips(
    flips: Callable[[Ints, Ints], Singles], bias: Singles
) -> tuple[Callable[[DenseRows | Sparse], Singles], Singles]:
    """Give every entry's e^b T to the given label (0 for itself), and (C,) b + log T to itself."""
    size = len(bias)
    classes, prior = np.arange(size), np.exp(bias)
    honest = bias + np.log(flips(classes, classes))

    def others(true: Ints, given: Ints) -> Singles:
        return np.where(true == given, np.float32(0), prior[true] * flips(true, given))

    if size > DENSE_CLASSES:
        return lambda layout: layout.look_up(others), honest
    table = others(*np.divmod(np.arange(size * size), size))
    return lambda layout: layout.from_pairs(table), honest


def _geometric_mean(
    lookups: list[Callable[[Ints, Ints], Singles]],
) -> Callable[[Ints, Ints], Singles]:
    if len(lookups) == 1:
        return lookups[0]

    def at(true: Ints, given: Ints) -> Singles:
        logs = np.log([lookup(true, given) for lookup in lookups])
        mean: Singles = np.exp(logs.mean(axis=0)).astype(np.float32)
        return mean

    return at
