"""Noise attention learning (NAL)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from labelclean.losses.base import RobustLoss, resolve_start
from labelclean.losses.checks import check_attention, number, whole
from labelclean.losses.margin import by_blocks, margin, with_gradient
from labelclean.losses.memory import SampleMemory

_LEAST_DOUBT = 1e-26


def attention_loss(logits: Tensor, targets: Tensor, attention: Tensor, lam: float) -> Tensor:
    """Give (B,) -sum_k q_k log(tau p_k + (1 - tau) q_k) - lam log tau, tau = sigmoid(attention).

    With r_k = q_k tau p_k / (tau p_k + (1 - tau) q_k) the gradients are p sum(r) - r by the logits
    and tau sum(q) - sum(r) - lam (1 - tau) by the attention logit c.

    Args:
        logits: (B, C).
        targets: (B,) int64 hard labels, or (B, C) q, held constant.
        attention: (B,) logits c.
        lam: Strength of the second term.
    """
    boost = -lam * F.logsigmoid(attention)
    if targets.dim() == 1:
        log_p = F.logsigmoid(margin(logits, targets))
        trust, doubt = F.logsigmoid(attention), F.logsigmoid(-attention)
        return boost - torch.logaddexp(trust + log_p, doubt)
    with torch.no_grad():
        held = attention.detach()
        values, rows, slopes = by_blocks(_mixture, logits, targets.to(logits.dtype), held)
    return boost + with_gradient(values, (rows, logits), (slopes, attention))


def _mixture(logits: Tensor, targets: Tensor, attention: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    tiny = torch.finfo(logits.dtype).tiny
    tau = torch.sigmoid(attention).clamp(min=tiny).unsqueeze(1)
    # Floored, so that a mixture of two vanishing parts keeps a logarithm.
    doubt = torch.sigmoid(-attention).clamp(min=_LEAST_DOUBT).unsqueeze(1)
    trusted = torch.softmax(logits, dim=1).mul_(tau)
    mix = torch.addcmul(trusted, targets, doubt).clamp_(min=tiny)
    values = -mix.log().mul_(targets).sum(dim=1)
    shares = (targets / mix).mul_(trusted)
    total = shares.sum(dim=1, keepdim=True)
    slopes = tau * targets.sum(dim=1, keepdim=True) - total
    return values, trusted.mul_(total / tau).sub_(shares), slopes.squeeze(1)


class Nal(RobustLoss):
    """Noise attention learning: an extra head says how far to trust each sample's prediction.

    With attention tau = sigmoid(c) and target q, L = -sum_k q_k log(tau p_k + (1 - tau) q_k) -
    lam log tau. The target is the given label before epoch `start`; from then on, in every
    `every`-th epoch, q <- alpha q + (1 - alpha) p at each step before the loss reads it.
    Low tau and low q_y mean suspect. The weight curve, focus and spread are those of a hard label
    at the best tau, min(1, lam / ((1 + lam)(1 - p))).

    Args:
        lam: Above 0; 0.5 for about 10 classes, 10 for 100, 50 for web data.
        alpha: 0 <= alpha < 1, how much of the target an update keeps.
        start: First epoch (0-based) that moves targets; None is 12 % of the epochs, at least 1.
        every: Epochs from one update to the next.

    Paper: Lu et al., "Noise Attention Learning: Enhancing Noise Robustness by Gradient Scaling",
    2022. Start and interval are from the released code, scaled; its clamps of q, p and tau and its
    optional reverse term are left out.
    """

    paper = "Lu, Bo & He, Noise Attention Learning, 2022"
    formula = (
        "L = -sum_k q_k log(tau p_k + (1 - tau) q_k) - lam log tau,  q <- alpha q + (1 - alpha) p"
    )
    advice = (
        ("about 10 classes", "lam=0.5"),
        ("CIFAR-100", "lam=10"),
        ("web data (WebVision, Clothing1M)", "lam=50"),
    )
    soft_targets = True
    needs_attention = True
    memory_shape = "N x C"
    signals = ("p_given", "attention", "target_given")

    def __init__(
        self, lam: float = 0.5, alpha: float = 0.9, start: int | None = None, every: int = 1
    ) -> None:
        super().__init__()
        self.lam = number("lam", lam, 0, open_low=True)
        self.alpha = number("alpha", alpha, 0, 1, open_high=True)
        self.start = start if start is None else whole("start", start, 0)
        self.every = whole("every", every, 1)
        self.memory = SampleMemory()

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Update the rows if the schedule says so, then give the loss with them."""
        index = self.sample_ids(index, len(logits))
        attention = check_attention(attention, len(logits)).to(logits.dtype)
        waited = self.epoch - resolve_start(self.start, self.epochs)
        if self.training and waited >= 0 and waited % self.every == 0:
            targets = self.memory.blend(index, labels, logits, self.alpha, self.gather)
        else:
            if self.training:
                self.memory.begin(index, labels, self.gather)
            targets = self.memory.read(index, labels) if waited >= 0 else labels
        return attention_loss(logits, targets, attention, self.lam)

    def weight(self, p: Tensor) -> Tensor:
        """Give min(2 lam p, 2(1 - p)): the weight at the best attention."""
        return torch.minimum(2 * self.lam * p, 2 * (1 - p))
