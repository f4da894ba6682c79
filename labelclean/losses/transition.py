"""The noise transition matrix, T_ij = P(given = j | true = i), estimated from predictions alone."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from labelclean.losses.margin import take

_SLACK = 1e-6
_PERCENTILE = 0.97


def from_anchors(probs: Tensor, quantile: float | None = None) -> Tensor:
    """Estimate T from one anchor a class: its most certain sample's prediction is row i.

    Args:
        probs: (N, C) predictions of a model trained on the given labels.
        quantile: Take the highest sample below this quantile of p_i instead of the highest, which
            may be an outlier; 0.97 is the papers' choice for few classes. Ranks decide, so that
            equal predictions, as of a saturated model, do no harm.

    Returns:
        (C, C) float64, rows sum to 1.
    """
    size = len(probs)
    rank = size if quantile is None else max(1, math.ceil(quantile * (size - 1)))
    T = probs[probs.kthvalue(rank, dim=0).indices].double()
    return T / T.sum(dim=1, keepdim=True)


def from_confident_joint(probs: Tensor, labels: Tensor) -> Tensor:
    """Estimate T from the confident joint (confident learning).

    A sample counts as truly j if p_j is at least the mean p_j of the samples labelled j; of several
    such classes the most probable one. The diagonal counts at least 1, and every given label's
    counts are scaled to the number of its samples.

    Args:
        probs: (N, C) predictions, best out of sample.
        labels: (N,) int64 given labels.

    Returns:
        (C, C) float64, rows sum to 1.
    """
    probs = probs.double()
    classes = probs.shape[1]
    sizes = torch.bincount(labels, minlength=classes).double()
    own = torch.zeros(classes, dtype=torch.float64, device=probs.device)
    own.index_add_(0, labels, take(probs, labels))
    # A class nobody was given has no threshold and is never the confident one.
    thresholds = torch.where(sizes > 0, own / sizes.clamp(min=1), torch.inf)
    candidates = torch.where(probs >= thresholds - _SLACK, probs, -1)
    best, true = candidates.max(dim=1)
    pairs = (labels * classes + true)[best >= 0]
    counts = torch.bincount(pairs, minlength=classes * classes).double().view(classes, classes)
    counts.diagonal().clamp_(min=1)
    joint = counts / counts.sum(dim=1, keepdim=True) * sizes.clamp(min=1).unsqueeze(1)
    return F.normalize(joint.T, p=1, dim=1)


def posterior_given(probs: Tensor, labels: Tensor, T: Tensor) -> Tensor:
    """Give (N,) P(true = y | x, given = y) = p_y T_yy / (pT)_y; low means suspect."""
    mixed = (probs * T.T[labels]).sum(dim=1)
    return take(probs, labels) * T.diagonal()[labels] / mixed.clamp(min=torch.finfo(T.dtype).tiny)


ESTIMATORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "confident_joint": from_confident_joint,
    "anchor": lambda probs, labels: from_anchors(probs),
    "percentile": lambda probs, labels: from_anchors(probs, _PERCENTILE),
}
