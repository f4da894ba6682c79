"""Error probabilities, corrected by what people found when they looked."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.calibration.constants import judge_constants

_STEPS = 50


@dataclass(frozen=True, slots=True)
class Recalibration:
    """logit p' = shift + slope * logit p; the slope is positive, so no order changes."""

    shift: float = 0.0
    slope: float = 1.0

    def __call__(self, p_error: NDArray[np.float64]) -> NDArray[np.float64]:
        """Correct probabilities (N,); NaN stays NaN, 0 and 1 stay certain."""
        bent = 1 / (1 + np.exp(-(self.shift + self.slope * _logit(p_error))))
        sure = (p_error <= 0) | (p_error >= 1)
        return np.where(sure, p_error, bent)


def recalibrate(p_error: NDArray[np.float64], wrong: NDArray[np.bool_]) -> Recalibration:
    """Fit the correction to answers.

    Idea: Platt's two parameters with a Gaussian prior at "as it was" (shift 0 ± 1, slope 1 ± 0.5),
    so that a few answers change little. Which rows were looked at may depend on p_error in any
    way: the model speaks of errors given p_error, so looking at the most suspect rows first does
    not bias it.

    Args:
        p_error: (n,) probabilities of the rows that were answered.
        wrong: (n,) whether the label was wrong.
    """
    usable = np.isfinite(p_error)
    x = np.stack([np.ones(int(usable.sum())), _logit(p_error[usable])], axis=1)
    y = wrong[usable].astype(np.float64)
    known = judge_constants()
    prior = np.array([known.answer_shift_precision, known.answer_slope_precision])
    start = np.array([0.0, 1.0])
    beta = start
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-(x @ beta)))
        slope = x.T @ (y - p) - prior * (beta - start)
        bend = (x * (p * (1 - p))[:, None]).T @ x + np.diag(prior)
        step = np.linalg.solve(bend, slope)
        # The objective is concave; short steps keep Newton's method from leaping over it.
        beta = beta + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-9:
            break
    return Recalibration(float(beta[0]), max(known.answer_least_slope, float(beta[1])))


def _logit(p: NDArray[np.float64]) -> NDArray[np.float64]:
    edge = judge_constants().answer_edge
    inside = np.clip(p, edge, 1 - edge)
    return np.asarray(np.log(inside / (1 - inside)))
