"""Losses that hold on to what the model believed early: ELR and SELC."""

import torch
from torch import Tensor
from torch.nn import functional as F

from labelclean.losses.base import RobustLoss, resolve_start
from labelclean.losses.checks import number, whole
from labelclean.losses.margin import (
    by_blocks,
    cross_entropy,
    log_total,
    take,
    with_gradient,
)
from labelclean.losses.memory import SampleMemory

_CLAMP = 1e-4


def early_learning_loss(logits: Tensor, labels: Tensor, targets: Tensor, lam: float) -> Tensor:
    """Give (B,) -log p_y + lam log(1 - <t, p>), p clamped to [1e-4, 1 - 1e-4] in the product.

    Args:
        logits: (B, C).
        labels: (B,) int64, or (B, C) soft targets.
        targets: (B, C) remembered t, held constant.
        lam: Strength of the second term.
    """

    def rowwise(logits: Tensor, labels: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        p = torch.softmax(logits, dim=1)
        inner = p.clamp(_CLAMP, 1 - _CLAMP).mul_(targets).sum(dim=1, keepdim=True)
        # Clamped entries pass no gradient, as in the released code. Where one p is above the upper
        # bound, all others are below the lower one, so the whole row is silent.
        pull = F.threshold(p, _CLAMP, 0).mul_(targets)
        scale = lam / (1 - inner) * (p.amax(dim=1, keepdim=True) < 1 - _CLAMP)
        lift = 1 + scale * pull.sum(dim=1, keepdim=True)
        fit = log_total(logits, p)
        rows = p.mul_(lift).addcmul_(pull, -scale)
        if labels.dim() == 1:
            column = labels.unsqueeze(1)
            fit -= take(logits, labels)
            rows.scatter_(1, column, rows.gather(1, column) - 1)
        else:
            fit -= (labels * logits).sum(dim=1)
            rows -= labels
        return fit + lam * torch.log1p(-inner).squeeze(1), rows

    with torch.no_grad():
        values, rows = by_blocks(rowwise, logits, labels, targets.to(logits.dtype))
    return with_gradient(values, (rows, logits))


class Elr(RobustLoss):
    """Early-learning regularisation: CCE plus a pull towards the running prediction.

    t <- beta t + (1 - beta) p~ at every step, from zero, with p~ the clamped and renormalised
    prediction; L = -log p_y + lam log(1 - <t, p>). The value may be negative. Rows of `targets` sum
    to less than 1 at first.

    Args:
        beta: 0 <= beta < 1; 0.7 for CIFAR-10, 0.9 for CIFAR-100.
        lam: 0 or more; 3 for CIFAR-10, 7 for CIFAR-100.

    Paper: Liu et al., "Early-Learning Regularization Prevents Memorization of Noisy Labels", 2020.
    """

    paper = "Liu et al., Early-Learning Regularization, 2020"
    formula = "L = -log p + lam log(1 - <t, p>),  t <- beta t + (1 - beta) p"
    advice = (
        ("CIFAR-10", "beta=0.7, lam=3"),
        ("CIFAR-10, asymmetric noise", "beta=0.9, lam=1"),
        ("CIFAR-100", "beta=0.9, lam=7"),
    )
    soft_targets = True
    memory_shape = "N x C"
    signals = ("p_given", "target_given")

    def __init__(self, beta: float = 0.7, lam: float = 3.0) -> None:
        super().__init__()
        self.beta = number("beta", beta, 0, 1, open_high=True)
        self.lam = number("lam", lam, 0)
        self.memory = SampleMemory()

    def _blend(self, index: Tensor, logits: Tensor) -> Tensor:
        return self.memory.blend(index, None, logits, self.beta, self.gather, clamp=_CLAMP)

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Update the rows, then give the regularised cross entropy."""
        index = self.sample_ids(index, len(logits))
        targets = self._blend(index, logits) if self.training else self.memory.read(index)
        return early_learning_loss(logits, labels, targets, self.lam)


class Selc(RobustLoss):
    """Self-ensemble label correction: the label fades into the running prediction.

    Before epoch `start`: CCE on the given label. From then on, at every step the sample is seen,
    t <- alpha t + (1 - alpha) p from the given label, and L = -sum_k t_k log p_k with t constant.

    Args:
        alpha: 0 <= alpha < 1; at 0.9 the given label's share halves in 6.6 visits.
        start: First epoch (0-based) that corrects; None is 12 % of the epochs, at least 1.

    Paper: Lu and He, "SELC: Self-Ensemble Label Correction Improves Learning with Noisy Labels",
    2022. We use log-softmax; the released log(softmax) can give NaN.
    """

    paper = "Lu & He, Self-Ensemble Label Correction, 2022"
    formula = "L = -sum_k t_k log p_k,  t <- alpha t + (1 - alpha) p"
    advice = (
        ("CIFAR, 200 epochs", "alpha=0.9, start=20 to 40"),
        ("Clothing1M, 40 epochs", "alpha=0.8, start=5"),
    )
    soft_targets = True
    memory_shape = "N x C"
    signals = ("p_given", "target_given")

    def __init__(self, alpha: float = 0.9, start: int | None = None) -> None:
        super().__init__()
        self.alpha = number("alpha", alpha, 0, 1, open_high=True)
        self.start = start if start is None else whole("start", start, 0)
        self.memory = SampleMemory()

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Update the rows if the schedule says so, then give the cross entropy with them."""
        index = self.sample_ids(index, len(logits))
        started = self.epoch >= resolve_start(self.start, self.epochs)
        if self.training and started:
            targets = self.memory.blend(index, labels, logits, self.alpha, self.gather)
        else:
            if self.training:
                self.memory.begin(index, labels, self.gather)
            targets = self.memory.read(index, labels) if started else labels
        return cross_entropy(logits, targets)
