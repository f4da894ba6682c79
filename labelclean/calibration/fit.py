"""Fit the noise model: likelihood first, then as sharp as the evidence of noise allows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from labelclean.arrays import Bools, Ints, Probs
from labelclean.calibration.arrays import DENSE_CLASSES, cheap_power
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.layout import Layout, gather
from labelclean.calibration.noise_parameters import (
    NoiseParameters,
    fit_noise_parameters,
    label_inverse_temperature,
    maximise,
    maximise_from_afar,
    responsibility,
    true_class_posterior,
)  # fmt: skip

FIT_ROWS = 20000


@dataclass(frozen=True, slots=True)
class NoiseFit:
    """The fitted model and what it rests on.

    Args:
        params: Final parameters.
        likelihood: The parameters the likelihood alone gives.
        supported: eta1, the noise rate the likelihood alone supports.
        label_inverse_temperature: s0, the power that calibrates the prediction to the given labels.
        alignment: rho, how far the flips follow the model's own confusions; 0 to 1.
        sharpening: kappa, what the power was to be multiplied with, before it was rounded up.
    """

    params: NoiseParameters
    likelihood: NoiseParameters
    supported: float
    label_inverse_temperature: float
    alignment: float
    sharpening: float


def fit(label: Ints, probs: Probs, rows: Ints, verified: Bools | None = None) -> NoiseFit:
    """Fit on some rows: likelihood first, then sharpened as far as the evidence of noise goes.

    What P(given | x) alone cannot tell is whether the model is unsure of the truth or the label is
    wrong. The likelihood splits the two where flips do not follow the picture; where it does find
    noise, networks are known to be surer of the truth than they say, so the power s is raised
    towards (`sharpening` + `sharpening_by_alignment` rho) times the label-calibrating power in
    proportion to that evidence. A model that is trained on noisy labels and honest is calibrated
    to them, s0 near 1, however noisy they are; s0 well below 1 shows a model that says more than it
    knows, and the assumption that it knows more than it says is given up: the weight is
    min(1, s0 / `honest_model`)^`honest_exponent` eta1 / (eta1 + `doubt`). With few classes the
    power is rounded up to one that is cheap to raise to, and the flips fitted to that.

    Args:
        label: (N,) given labels.
        probs: (N, C) out-of-sample probabilities; may be memory-mapped.
        rows: (n,) the rows to fit on.
        verified: (N,) rows whose label is known to be right: they show how sure the model is of
            the truth, and say nothing about how labels are flipped.
    """
    constants, size = judge_constants(), probs.shape[1]
    layout = gather(label, probs, rows)
    known = None if verified is None or not verified.any() else verified[rows]
    base = label_inverse_temperature(layout, size)
    # The truth is never vaguer than the prediction of the given label, nor than that prediction
    # once calibrated: over-confident models need the second.
    params = fit_noise_parameters(layout, size, min(constants.least_sharpness, base), known)
    shares, _ = responsibility(layout, params, known)
    supported = float(1 - shares[layout.given].mean(dtype=np.float64))
    rho = _alignment(layout, params, shares)
    honest = min(1.0, base / constants.honest_model) ** constants.honest_exponent
    weight = honest * supported / (supported + constants.doubt)
    multiple = constants.sharpening + constants.sharpening_by_alignment * rho
    goal = multiple * max(base, 1.0) / params.inverse_temperature
    kappa = 1 + weight * max(0.0, goal - 1)
    likelihood, inverse_temperature = params, kappa * params.inverse_temperature
    if size <= DENSE_CLASSES:
        inverse_temperature = cheap_power(inverse_temperature)
    sharper = replace(params, inverse_temperature=inverse_temperature, bias=kappa * params.bias)
    if kappa > 1.01:
        params = maximise_from_afar(layout, sharper, None, known)
    elif inverse_temperature != params.inverse_temperature:
        params = maximise(layout, sharper, None, known, least=1)
    return NoiseFit(params, likelihood, supported, base, rho, kappa)


def _alignment(layout: Layout, params: NoiseParameters, shares: NDArray[np.float32]) -> float:
    """Correlate the estimated flips with what the model confuses, shrunk towards a prior."""
    size = len(params.bias)
    true, given = layout.pairs
    flips = sparse.csr_array((layout.pair_sum(shares), (true, given)), shape=(size, size))
    power = judge_constants().confusion_sharpness
    sharp, _ = true_class_posterior(layout, power * params.inverse_temperature, power * params.bias)
    confused = layout.products(sharp)
    return shrunk_correlation(*(m - sparse.diags_array(m.diagonal()) for m in (flips, confused)))


def shrunk_correlation(flips: Any, confused: Any) -> float:
    """Correlate two (C, C) matrices off their diagonals, which are zero, shrunk towards a prior.

    Args:
        flips: Expected number of rows of each true class under each given label.
        confused: How much the model takes each class for each other one. Both dense or sparse.
    """
    constants, size = judge_constants(), flips.shape[0]
    prior, weight = constants.prior_alignment, constants.prior_pairs
    if size == 2:
        return prior
    pairs = size * (size - 1)
    sums = [float(m.sum()) for m in (flips, confused, flips * flips, confused * confused)]
    covariance = float((flips * confused).sum()) - sums[0] * sums[1] / pairs
    spread = (sums[2] - sums[0] ** 2 / pairs) * (sums[3] - sums[1] ** 2 / pairs)
    correlation = covariance / np.sqrt(spread) if spread > 0 else 0.0
    return float((pairs * max(0.0, correlation) + weight * prior) / (pairs + weight))


def choose_rows(count: int, most: int = FIT_ROWS) -> Ints:
    """Give the rows to fit on: all in a shuffled order, or a sample; the same every time."""
    rng = np.random.default_rng(0)
    return rng.permutation(count) if count <= most else rng.choice(count, most, replace=False)
