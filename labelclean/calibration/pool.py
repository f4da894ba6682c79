"""Several class posteriors made one: a log-linear pool whose weights come from the given labels.

    g = softmax(sum_k w_k log p_k),   w >= 0

maximises the likelihood of the given labels seen through a transition matrix. A source that does
not help gets weight zero, one that is too sure a small one: a weight is also a temperature. Only
sources that did not see the row's own label can be weighed so.
"""

from collections.abc import Sequence

import numpy as np

from labelclean.arrays import Floats, Ints, Probs, Singles
from labelclean.calibration.constants import judge_constants

_BLOCK_NUMBERS = 1 << 23  # numbers held at a time: 64 MB
_EVENED = (1.0, 0.75, 0.5, 0.25)


def pool(posteriors: Sequence[Probs], weights: Floats) -> Singles:
    """Give the normalised weighted product of posteriors, each (N, C) with rows that sum to one."""
    count, size = posteriors[0].shape
    fused = np.empty((count, size), np.float32)
    step, floor = max(1, _BLOCK_NUMBERS // size), judge_constants().posterior_floor
    for begin in range(0, count, step):
        part = slice(begin, begin + step)
        logs = np.zeros(posteriors[0][part].shape)
        for posterior, weight in zip(posteriors, weights, strict=True):
            logs += weight * np.log(posterior[part] + floor)
        fused[part] = _softmax(logs)
    return fused


def likely_weights(
    posteriors: Sequence[Probs], label: Ints, table: Floats, start: Floats
) -> Floats:
    """Give the weights under which the pool explains the given labels best.

    The likelihood hardly tells sources apart that say the same, and errors of single sources
    average out, so the weights move towards equal ones as far as the likelihood allows.

    Args:
        posteriors: K times (n, C), none of which saw the row's own label.
        label: (n,) given labels.
        table: (C, C) P(given | true), rows sum to one.
        start: (K,) weights to start from.
    """
    known = judge_constants()
    floor = known.posterior_floor
    logs = np.stack([np.log(posterior + floor, dtype=np.float64) for posterior in posteriors])
    seen = table[:, label].T

    def cost(weights: Floats) -> tuple[float, Floats]:
        fused = _softmax(np.tensordot(weights, logs, 1))
        joint = fused * seen
        likelihood = joint.sum(axis=1) + 1e-12
        gap = joint / likelihood[:, None] - fused
        slope = np.array([np.vdot(gap, one) for one in logs])
        return -float(np.log(likelihood).mean()), -slope / len(label)

    from scipy.optimize import minimize  # noqa: PLC0415 (not every command asks for it)

    found = minimize(
        cost, start, jac=True, method="L-BFGS-B", bounds=[(0.0, known.heaviest)] * len(start)
    )
    best: Floats = np.asarray(found.x)

    def explained(weights: Floats) -> Floats:
        fused = _softmax(np.tensordot(weights, logs, 1))
        values: Floats = np.log((fused * seen).sum(axis=1) + 1e-12)
        return values

    most = explained(best)
    for share in _EVENED:
        even: Floats = (1 - share) * best + share * best.mean()
        change = explained(even) - most
        if change.mean() >= -known.choice_errors * change.std() / np.sqrt(len(label)):
            return even
    return best


def _softmax(logs: Floats) -> Floats:
    values: Floats = np.exp(logs - logs.max(axis=1, keepdims=True))
    values /= values.sum(axis=1, keepdims=True)
    return values
