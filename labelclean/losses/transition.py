"""The noise transition matrix, T_ij = P(given = j | true = i), estimated from predictions alone."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from labelclean.evidence.confident import confident_joint

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

    Every given label's counts are scaled to the number of its samples.

    Args:
        probs: (N, C) predictions, best out of sample.
        labels: (N,) int64 given labels.

    Returns:
        (C, C) float64, rows sum to 1.
    """
    given = labels.cpu().numpy()
    counts = torch.from_numpy(confident_joint(given, probs.cpu().numpy())).to(probs.device).double()
    sizes = torch.bincount(labels, minlength=len(counts)).double()
    joint = counts / counts.sum(dim=1, keepdim=True) * sizes.clamp(min=1).unsqueeze(1)
    return F.normalize(joint.T, p=1, dim=1)


ESTIMATORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "confident_joint": from_confident_joint,
    "anchor": lambda probs, labels: from_anchors(probs),
    "percentile": lambda probs, labels: from_anchors(probs, _PERCENTILE),
}
