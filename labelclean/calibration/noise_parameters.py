"""Maximum likelihood for 'the truth is a power of the prediction, seen through flips'.

    q = softmax(s log p + b),   P(given y | x) = sum_c q_c T[c, y]

fitted by expectation-maximisation. The shape of the reliability curve tells s from T: flips
flatten it at high confidence, a model's own doubt does not.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Bools, Singles
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.layout import Layout
from labelclean.calibration.transition import Transition

FIRST_ROWS = 4000  # the path to the optimum is walked on few rows, the last steps on all


@dataclass(frozen=True, slots=True)
class NoiseParameters:
    """Parameters of the model.

    Args:
        inverse_temperature: s, how much surer the truth is than the prediction.
        bias: (C,) b, float64.
        transition: T.
    """

    inverse_temperature: float
    bias: NDArray[np.float64]
    transition: Transition


def true_class_posterior(
    layout: Layout, inverse_temperature: float, bias: NDArray[np.float64]
) -> tuple[Singles, Singles | float]:
    """Give q of every entry and the share (N,) of the classes that are not entries."""
    weight = np.exp(
        np.float32(inverse_temperature) * layout.log_p + layout.by_class(bias.astype(np.float32))
    )
    mass, _ = layout.rest(inverse_temperature)
    total = layout.row_sum(weight) + mass
    weight /= layout.spread(total)
    return weight, mass / total


def responsibility(
    layout: Layout, params: NoiseParameters, known: Bools | None = None, q: Singles | None = None
) -> tuple[Singles, float]:
    """Give P(true class | x, given) of every entry and the mean log-likelihood.

    Rows of `known` (N,) have their given label as the truth; q is
    `true_class_posterior` where it is at hand.
    """
    if q is None:
        q, _ = true_class_posterior(layout, params.inverse_temperature, params.bias)
    joint = q * layout.from_pairs(params.transition.values())
    likelihood = np.maximum(layout.row_sum(joint), np.float32(1e-30))
    joint /= layout.spread(likelihood)
    if known is not None:
        joint *= layout.spread((~known).astype(np.float32))
        joint[layout.given] += known
    return joint, float(np.log(likelihood).mean(dtype=np.float64))


def newton_step(
    layout: Layout,
    params: NoiseParameters,
    target: Singles,
    believed: tuple[Singles, Singles | float],
    *,
    fixed_temperature: bool = False,
) -> tuple[float, NDArray[np.float64]]:
    """Take one Newton step of (s, b) towards the targets, an entry array whose rows sum to one.

    `believed` is the `true_class_posterior` that the parameters give now.
    """
    log_p, bias, constants = layout.log_p, params.bias, judge_constants()
    ridge, longest = constants.bias_ridge, constants.largest_step
    q, q_rest = believed
    gap = target - q
    gradient = layout.class_sum(gap) - ridge * bias
    used = layout.class_sum(q)
    outer = layout.outer(q)
    curve = np.diag(used) - outer if outer is not None else np.diag(np.zeros(0))
    _, rest_log = layout.rest(params.inverse_temperature)
    weighted = q * log_p
    mean = layout.row_sum(weighted) + q_rest * rest_log
    slope = float(np.vdot(gap, log_p)) - float(np.sum(q_rest * rest_log, dtype=np.float64))
    bend = (
        float(np.vdot(weighted, log_p))
        + float(np.sum(q_rest * rest_log**2, dtype=np.float64))
        - float(np.vdot(mean, mean))
    )
    if outer is None:
        # The diagonal of class sums bounds the curvature: a short but safe step.
        step_b = gradient / (used + ridge)
        step_s = slope / max(bend, 1e-6)
    else:
        cross = layout.class_sum(weighted - q * layout.spread(mean))
        size = len(bias)
        matrix = np.empty((size + 1, size + 1))
        matrix[:size, :size] = curve + ridge * np.eye(size)
        matrix[size, :size] = matrix[:size, size] = cross
        matrix[size, size] = bend + 1e-6
        keep = slice(0, size if fixed_temperature else size + 1)
        solved = np.linalg.solve(matrix[keep, keep], np.append(gradient, slope)[keep])
        step_b, step_s = solved[:size], 0.0 if fixed_temperature else float(solved[-1])
    bias = bias + np.clip(step_b, -longest, longest)
    inverse_temperature = params.inverse_temperature
    if not fixed_temperature:
        inverse_temperature += float(np.clip(step_s, -longest, longest))
    return inverse_temperature, bias - bias.mean()


def label_inverse_temperature(layout: Layout, size: int, steps: int = 30) -> float:
    """Fit the power that calibrates the prediction to the given labels, as if none were wrong."""
    constants = judge_constants()
    params = NoiseParameters(1.0, np.zeros(size), Transition.start(size, layout.pairs))
    for part in _few_then_all(layout):
        target = np.zeros_like(part.log_p)
        target[part.given] = 1
        for _ in range(steps):
            inverse_temperature, bias = newton_step(
                part,
                params,
                target,
                true_class_posterior(part, params.inverse_temperature, params.bias),
            )
            inverse_temperature = float(
                np.clip(inverse_temperature, constants.vaguest, constants.sharpest)
            )
            done = abs(inverse_temperature - params.inverse_temperature) < 1e-3
            params = replace(params, inverse_temperature=inverse_temperature, bias=bias)
            if done:
                break
    return params.inverse_temperature


def _few_then_all(layout: Layout) -> list[Layout]:
    """Give the rows to fit on: most of the way on few of many rows, the end on all."""
    many = len(layout.label) > 2 * FIRST_ROWS
    return [layout.take(FIRST_ROWS), layout] if many else [layout]


def maximise(
    layout: Layout,
    params: NoiseParameters,
    floor: float | None,
    known: Bools | None = None,
    *,
    least: int,
) -> NoiseParameters:
    """Run expectation-maximisation until the mean log-likelihood settles.

    Args:
        layout: The evidence.
        params: Where to start.
        floor: Smallest power allowed; None keeps the power as it is.
        known: (N,) rows whose given label is the truth; they do not count as evidence on flips.
        least: Steps that are always taken.
    """
    constants, before = judge_constants(), -np.inf
    for step in range(constants.most_steps):
        believed = true_class_posterior(layout, params.inverse_temperature, params.bias)
        shares, now = responsibility(layout, params, known, believed[0])
        inverse_temperature, bias = newton_step(
            layout, params, shares, believed, fixed_temperature=floor is None
        )
        if known is not None:
            shares = shares * layout.spread((~known).astype(np.float32))
        params = NoiseParameters(
            inverse_temperature
            if floor is None
            else float(np.clip(inverse_temperature, floor, constants.sharpest)),
            bias,
            Transition.from_counts(len(bias), layout.pairs, layout.pair_sum(shares)),
        )
        if step >= least and abs(now - before) < constants.settled:
            break
        before = now
    return params


def maximise_from_afar(
    layout: Layout, params: NoiseParameters, floor: float | None, known: Bools | None
) -> NoiseParameters:
    """Maximise from a start that may be far away."""
    for part, least in zip(_few_then_all(layout), (judge_constants().least_steps, 3), strict=False):
        sure = None if known is None else known[: len(part.label)]
        params = maximise(part, params, floor, sure, least=least)
    return params


def fit_noise_parameters(
    layout: Layout, size: int, floor: float, known: Bools | None = None
) -> NoiseParameters:
    """Fit s, b and T by maximum likelihood; s stays at or above the floor."""
    first = judge_constants().first_inverse_temperature
    start = NoiseParameters(first, np.zeros(size), Transition.start(size, layout.pairs))
    return maximise_from_afar(layout, start, floor, known)
