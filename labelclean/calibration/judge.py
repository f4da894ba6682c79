"""Calibrated error probabilities from given labels and out-of-sample probabilities alone."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from labelclean.calibration.layout import Ints, Layout, gather, lay_out, tile_rows
from labelclean.calibration.mixing import (
    Mixing,
    fit_mixing,
    label_power,
    maximise,
    responsibility,
    truth,
)  # fmt: skip

FIT_ROWS = 20000
DOUBT = 0.03  # noise that the likelihood must find before its evidence counts for half
PRIOR_ALIGNMENT, PRIOR_PAIRS = 0.4, 6.0


@dataclass(frozen=True, slots=True)
class Fitted:
    """The fitted model and what it rests on.

    Args:
        mixing: Final parameters.
        supported: eta1, the noise rate the likelihood alone supports.
        label_power: s0, the power that calibrates the prediction to the given labels.
        alignment: rho, how far the flips follow the model's own confusions; 0 to 1.
        sharpening: kappa, what the power was multiplied with.
    """

    mixing: Mixing
    supported: float
    label_power: float
    alignment: float
    sharpening: float


@dataclass(frozen=True, slots=True)
class Posterior:
    """What the fitted model says about each of N rows.

    Args:
        log_odds: (N,) float64, log of P(given label wrong) / P(given label right).
        suggested: (N,) int64, the most probable true class.
        p_suggested: (N,) float32, its probability given picture and label.
    """

    log_odds: NDArray[np.float64]
    suggested: Ints
    p_suggested: NDArray[np.float32]

    @property
    def p_error(self) -> NDArray[np.float64]:
        """(N,) probability that the given label is wrong."""
        return expit(self.log_odds)  # type: ignore[no-any-return]


def fit(label: Ints, probs: NDArray[np.floating], rows: Ints) -> Fitted:
    """Fit on some rows: likelihood first, then sharpened as far as the evidence of noise goes.

    What P(given | x) alone cannot tell is whether the model is unsure of the truth or the label is
    wrong. The likelihood splits the two where flips do not follow the picture; where it does find
    noise, networks are known to be surer of the truth than they say, so the power s is raised
    towards (2.5 + 2 rho) times the label-calibrating power in proportion to that evidence.
    """
    size = probs.shape[1]
    layout = gather(label, probs, rows)
    base = label_power(layout, size)
    mixing = fit_mixing(layout, size)
    q, _ = truth(layout, mixing.power, mixing.bias)
    shares, _ = responsibility(layout, mixing, q)
    supported = float(1 - shares[layout.given].mean(dtype=np.float64))
    rho = _alignment(layout, mixing, shares)
    weight = supported / (supported + DOUBT)
    goal = (2.5 + 2 * rho) * max(base, 1.0) / mixing.power
    kappa = 1 + weight * max(0.0, goal - 1)
    if kappa > 1.01:
        sharper = replace(mixing, power=kappa * mixing.power, bias=kappa * mixing.bias)
        mixing = maximise(layout, sharper, fixed_power=True, least=16)
    return Fitted(mixing, supported, base, rho, kappa)


def _alignment(layout: Layout, mixing: Mixing, shares: NDArray[np.float32]) -> float:
    """Correlate the estimated flips with what the model confuses, shrunk towards 0.4."""
    size = len(mixing.bias)
    if size == 2:
        return PRIOR_ALIGNMENT
    true, given = layout.pairs
    flips = sparse.csr_array((layout.pair_sum(shares), (true, given)), shape=(size, size))
    sharp, _ = truth(layout, 2 * mixing.power, 2 * mixing.bias)
    table = layout.matrix(sharp)
    confused = sparse.csr_array(table.T @ table)
    flips, confused = (m - sparse.diags_array(m.diagonal()) for m in (flips, confused))
    pairs = size * (size - 1)
    sums = [float(m.sum()) for m in (flips, confused, flips * flips, confused * confused)]
    covariance = float((flips * confused).sum()) - sums[0] * sums[1] / pairs
    spread = (sums[2] - sums[0] ** 2 / pairs) * (sums[3] - sums[1] ** 2 / pairs)
    correlation = covariance / np.sqrt(spread) if spread > 0 else 0.0
    return (pairs * max(0.0, correlation) + PRIOR_PAIRS * PRIOR_ALIGNMENT) / (pairs + PRIOR_PAIRS)


def score(label: Ints, probs: NDArray[np.floating], fitted: Fitted) -> Posterior:
    """Apply a fitted model to every row, a tile at a time; memory does not grow with N x C."""
    mixing = fitted.mixing
    count, size = probs.shape
    bias = mixing.bias.astype(np.float32)
    flips = mixing.transition.lookup()
    classes = np.arange(size)
    honest = np.log(flips(classes, classes).astype(np.float64))
    log_odds, p_suggested = np.empty(count), np.empty(count, dtype=np.float32)
    suggested = np.empty(count, dtype=np.int64)
    step = tile_rows(size)
    for begin in range(0, count, step):
        rows = slice(begin, begin + step)
        layout = lay_out(label[rows], probs[rows])
        joint = np.float32(mixing.power) * layout.log_p
        joint += layout.by_class(bias)
        peak = layout.row_max(joint)
        # The given label's part stays a logarithm: the most suspect rows would all underflow.
        log_given = (joint[layout.given] - peak).astype(np.float64) + honest[label[rows]]
        joint -= layout.spread(peak)
        np.exp(joint, out=joint)
        joint *= layout.look_up(flips)
        joint[layout.given] = 0
        others = np.maximum(layout.row_sum(joint), np.float32(1e-37)).astype(np.float64)
        top, rival = layout.best(joint)
        given_joint = np.exp(log_given)
        wins = top > given_joint
        log_odds[rows] = np.log(others) - log_given
        suggested[rows] = np.where(wins, rival, label[rows])
        p_suggested[rows] = np.where(wins, top, given_joint) / (others + given_joint)
    return Posterior(log_odds, suggested, p_suggested)


def choose_rows(count: int, most: int = FIT_ROWS) -> Ints:
    """Give the rows to fit on: all in a shuffled order, or a sample; the same every time."""
    return np.random.default_rng(0).permutation(count)[:most]
