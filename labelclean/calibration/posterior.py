"""Apply a fitted noise model to every row: log-odds of an error and the likeliest true class."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.calibration.arrays import Floats, Ints, Probs, tile_rows
from labelclean.calibration.layout import lay_out
from labelclean.calibration.mixing import Mixing


@dataclass(frozen=True, slots=True)
class Posterior:
    """What the fitted model says about each of N rows.

    Args:
        log_odds: (N,) float32, log of P(given label wrong) / P(given label right).
        suggested: (N,) int64, the most probable true class.
        p_suggested: (N,) float32, its probability given picture and label.
    """

    log_odds: NDArray[np.float32]
    suggested: Ints
    p_suggested: NDArray[np.float32]

    @property
    def p_error(self) -> NDArray[np.float64]:
        """(N,) probability that the given label is wrong."""
        return sigmoid(self.log_odds).astype(np.float64)


def sigmoid(values: Floats) -> Floats:
    """1 / (1 + exp(-v)) in single precision, several times faster than double."""
    with np.errstate(over="ignore"):  # exp(100) is infinite and 1 / infinity the right 0
        return np.float32(1) / (np.float32(1) + np.exp(-values))


def score(label: Ints, probs: Probs, *mixings: Mixing, rows: Ints | None = None) -> Posterior:
    """Apply a fitted model, a tile at a time; memory does not grow with N x C.

    Args:
        label: (N,) given labels.
        probs: (N, C) probabilities; may be memory-mapped.
        mixings: The model; of several, the normalised geometric mean of their answers is given.
        rows: (n,) the rows to score; default: all.
    """
    count, size = len(label) if rows is None else len(rows), probs.shape[1]
    power = float(np.mean([mixing.power for mixing in mixings]))
    bias = np.mean([mixing.bias for mixing in mixings], axis=0).astype(np.float32)
    flips = _geometric_mean([mixing.transition.lookup() for mixing in mixings])
    classes = np.arange(size)
    honest = np.log(flips(classes, classes))

    def others_only(true: Ints, given: Ints) -> Floats:
        return np.where(true == given, np.float32(0), flips(true, given))

    log_odds = np.empty(count, dtype=np.float32)
    p_suggested = np.empty(count, dtype=np.float32)
    suggested = np.empty(count, dtype=np.int64)
    step = tile_rows(size)
    for begin in range(0, count, step):
        tile = slice(begin, begin + step)
        source = tile if rows is None else rows[tile]
        given = label[source]
        layout = lay_out(given, probs[source], centred=False)
        joint = np.multiply(layout.log_p, np.float32(power), out=layout.log_p)
        joint += layout.by_class(bias)
        peak = layout.row_max(joint)
        # The given label's part stays a logarithm: the most suspect rows would all underflow.
        log_given = joint[layout.given] - peak + honest[given]
        joint -= layout.spread(peak)
        np.exp(joint, out=joint)
        joint *= layout.look_up(others_only)
        others = np.maximum(layout.row_sum(joint), np.float32(1e-37))
        top = layout.row_max(joint)
        given_joint = np.exp(log_given)
        wins = top > given_joint
        log_odds[tile] = np.log(others) - log_given
        suggested[tile] = given
        suggested[tile][wins] = layout.best_class(joint, wins)
        p_suggested[tile] = np.maximum(top, given_joint) / (others + given_joint)
    return Posterior(log_odds, suggested, p_suggested)


def _geometric_mean(
    lookups: list[Callable[[Ints, Ints], Floats]],
) -> Callable[[Ints, Ints], Floats]:
    if len(lookups) == 1:
        return lookups[0]

    def at(true: Ints, given: Ints) -> Floats:
        logs = np.log([lookup(true, given) for lookup in lookups])
        mean: Floats = np.exp(logs.mean(axis=0)).astype(np.float32)
        return mean

    return at
