"""Determinant-based mutual information, a loss of the whole batch."""

import torch
from torch import Tensor

from labelclean.errors import DataError, shortlist
from labelclean.losses.base import RobustLoss

_SINGULAR = 1e-12


def determinant_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Give the scalar -log |det U|, U = Y^T P / B, from (B, C) logits and (B,) labels, in float64.

    A numerically singular U has no useful gradient (it grows like 1 / |det|): its value is that of
    U + 1e-12 I and its gradient 0, so the batch is passed over.
    """
    # Apple's GPUs know no float64; the matrix is small.
    home = torch.device("cpu") if logits.device.type == "mps" else logits.device
    probs = torch.softmax(logits.to(home).double(), dim=1)
    batch, classes = probs.shape
    joint = probs.new_zeros(classes, classes).index_add(0, labels.to(home), probs) / batch
    pivots = torch.linalg.lu_factor_ex(joint.detach())[0].diagonal().abs()
    if pivots.amin() <= _SINGULAR * pivots.amax():
        ridge = _SINGULAR * torch.eye(classes, dtype=joint.dtype, device=home)
        joint = joint.detach() + ridge + 0 * joint
    log_det: Tensor = torch.linalg.slogdet(joint).logabsdet
    return -log_det.to(logits)


class Dmi(RobustLoss):
    """Determinant-based mutual information: class-conditional noise only shifts it by a constant.

    U = Y^T P / B (rows: given label, columns: prediction), L = -log |det U|, one value a batch,
    repeated for every sample. It does not know the order of the classes, so it needs a model that
    CCE has trained first, and batches that hold every class, best several times C samples. The
    authors use a very small learning rate (1e-6) and clip gradients.

    Paper: Xu et al., "L_DMI: A Novel Information-theoretic Loss Function for Training Deep Nets
    Robust to Label Noise", 2019. They do not divide by B and add 0.001 to the determinant, which
    freezes training once the determinant is small; we use slogdet in float64.
    """

    paper = "Xu et al., L_DMI, 2019"
    formula = "L = -log |det(Y^T P / B)|, one value a batch"
    per_sample = False
    warmup_loss = "cce"
    warmup_fraction = 0.5

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give the batch's value, once a sample."""
        classes = logits.shape[1]
        counts = torch.bincount(labels, minlength=classes)
        if (counts == 0).any():
            missing = (counts == 0).nonzero().flatten().tolist()
            raise DataError(
                f"dmi needs every class in every batch; this batch of {len(labels)} lacks "
                f"{len(missing)} of {classes} classes: {shortlist(missing)}. "
                f"Use larger or class-balanced batches, or another loss."
            )
        return determinant_loss(logits, labels).expand(len(labels))
