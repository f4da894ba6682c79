"""Let the neighbours in feature space join the probabilities, as far as they help."""

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Ints, Probs
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.fit import choose_rows
from labelclean.calibration.layout import Layout, gather
from labelclean.calibration.noise_parameters import label_inverse_temperature, true_class_posterior
from labelclean.errors import DataError
from labelclean.evidence.neighbours import nearest_rows, vote


def with_neighbours(
    label: Ints, probs: Probs, features: Probs
) -> tuple[NDArray[np.float32], NDArray[np.float64], Ints]:
    """Blend the probabilities with the vote of the nearest rows.

    The blend is a geometric mean; the neighbours' share (0, 1/4 or 1/2) is the one whose blend,
    once calibrated, predicts the given labels best. A row does not vote for itself.

    Returns:
        (N, C) blended probabilities, (N,) share of the vote that agrees with the given label, and
        (N, k) the nearest rows, nearest first.

    Raises:
        DataError: The features do not fit the rows.
    """
    if features.ndim != 2 or len(features) != len(label) or not np.isfinite(features).all():
        raise DataError(
            f"features has shape {features.shape}; it must hold finite numbers, (rows, dimensions) "
            f"for {len(label)} rows."
        )
    size = probs.shape[1]
    rows, similar = nearest_rows(features, judge_constants().blend_neighbours)
    if not rows.shape[1]:
        return np.array(probs, dtype=np.float32), np.ones(len(label)), rows
    votes = vote(rows, similar, np.eye(size)[label])
    sample = choose_rows(len(label))
    shares = judge_constants().blend_shares
    best = max(shares, key=lambda share: _fit_to_labels(label, _blend(probs, votes, share), sample))
    return _blend(probs, votes, best), votes[np.arange(len(label)), label], rows


def _blend(probs: Probs, votes: NDArray[np.float64], share: float) -> NDArray[np.float32]:
    if not share:
        return np.array(probs, dtype=np.float32)
    least = judge_constants().blend_least_vote
    floor = least / probs.shape[1]
    logs = (1 - share) * np.log(np.maximum(probs, floor)) + share * np.log(votes + least)
    weight = np.exp(logs - logs.max(axis=1, keepdims=True))
    blended: NDArray[np.float32] = weight / weight.sum(axis=1, keepdims=True)
    return blended.astype(np.float32)


def _fit_to_labels(label: Ints, probs: NDArray[np.float32], sample: Ints) -> float:
    layout: Layout = gather(label, probs, sample)
    size = probs.shape[1]
    q, _ = true_class_posterior(layout, label_inverse_temperature(layout, size), np.zeros(size))
    return float(np.log(np.maximum(q[layout.given], 1e-12)).mean(dtype=np.float64))
