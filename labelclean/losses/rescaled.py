"""Losses defined by their sample weight: IMAE and gradient rescaling (GR).

Both keep the direction p - e_y of the gradient and set its L1 norm, the weight w(p), directly.
A loss with that gradient has no closed form and its integral up to p = 1 diverges, so training uses
the surrogate -0.5 * stop_gradient(w) * s of the log-odds s, whose gradient is exactly
0.5 w (pi - e_y) with pi the softmax over j != y. Nothing is divided by 1 - p.

By that definition a sample pulls however well it is fitted, so logits grow for ever. The authors'
layers divide by 2(1 - p) + eps instead of 2(1 - p), which lets go of a sample once 1 - p is below
about eps; `eps` does the same, without rounding: the gradient is multiplied by (1 - p) /
(1 - p + eps / 2). Their Caffe layer has eps = 1e-6, the one for PyTorch 1e-8.
"""

import torch
from numpy.polynomial.legendre import leggauss
from torch import Tensor
from torch.nn import functional as F

from labelclean.errors import ConfigError
from labelclean.losses.base import RobustLoss
from labelclean.losses.checks import check_labels, check_logits, choice, number
from labelclean.losses.margin import margin

_NORMALIZE = ("weights", "none")
_NODES = 256
_LARGEST_EXPONENT = 80.0  # exp() of more than 88 is infinite in float32


def rescaled_weight(odds: Tensor, beta: float, lam: float, g: str = "exp") -> Tensor:
    """Give w = g(beta p^lam (1 - p)) for the log-odds s of p, exact near both ends."""
    return _shape(beta * torch.exp(lam * F.logsigmoid(odds)) * torch.sigmoid(-odds), g)


def held(rest: Tensor, eps: float) -> Tensor | float:
    """Give the share (1 - p) / (1 - p + eps / 2) of its pull that a sample keeps; rest is 1 - p."""
    return rest / (rest + eps / 2).clamp(min=torch.finfo(rest.dtype).tiny) if eps else 1.0


def rescaled_potential(
    logits: Tensor, labels: Tensor, beta: float, lam: float, g: str = "exp", eps: float = 0.0
) -> Tensor:
    """Give L_rel(s) = 0.5 * integral from s to 0 of w du, by Gauss-Legendre quadrature.

    The reference point is p = 0.5, since the papers' integral up to p = 1 diverges.

    Args:
        logits: (B, C).
        labels: (B,) int64.
        beta: See `Gr`.
        lam: See `Gr`.
        g: See `Gr`.
        eps: See `Gr`.

    Returns:
        (B,), float64 for float64 logits, else float32.
    """
    check_logits(logits)
    check_labels(labels, len(logits), logits.shape[1], soft_targets=False)
    odds = margin(logits.double(), labels)
    nodes, shares = (torch.from_numpy(a).to(odds.device) for a in leggauss(_NODES))
    between = odds.unsqueeze(1) * (1 + nodes) / 2
    weight = rescaled_weight(between, beta, lam, g) * held(torch.sigmoid(-between), eps)
    mean = (weight @ shares) / 2
    return (-0.5 * odds * mean).to(torch.promote_types(logits.dtype, torch.float32))


def surrogate(odds: Tensor, weight: Tensor, loss: RobustLoss, normalize: str, eps: float) -> Tensor:
    """Give (B,) values whose gradient by the log-odds is -w/2, times B / sum(w) if asked.

    With eps it is that times (1 - p) / (1 - p + eps / 2), which does not enter the sum. The sums of
    the weights and of the samples go through the loss's reducer together, so that several processes
    normalise by the whole batch, whether the reducer adds or averages.
    """
    if normalize == "weights":
        sums = torch.stack((weight.sum(), weight.new_tensor(len(weight))))
        total, count = loss.weight_sum_reducer(sums)
        weight = weight * (count / total.clamp(min=torch.finfo(weight.dtype).tiny))
    return -0.5 * weight * held(torch.sigmoid(-odds.detach()), eps) * odds


def _shape(emphasis: Tensor, g: str) -> Tensor:
    return emphasis.exp() if g == "exp" else emphasis


class Gr(RobustLoss):
    """Gradient rescaling: choose which samples matter (focus) and how much they differ (spread).

    w = g(beta p^lam (1 - p)), gradient (w / 2)(pi - e_y). Focus lam / (1 + lam). Rule: raise lam
    with the noise, beta with lam, and use a smaller lam for many classes.

    Args:
        beta: Spread, -80 to 80; 0 weights all samples alike; below 0 prefers the ends.
        lam: Focus, 0 or more; the papers' lambda.
        g: "exp", or "identity" (beta=2, lam=0: CCE; beta=4, lam=1: MAE; beta=2, lam=q: GCE).
        normalize: "weights" scales the batch by B / sum(w), as the authors' released layer does;
            "none" is the papers' formula, whose step grows with the mean weight.
        eps: 0, or 1e-6 to let go of fitted samples as the authors' layer does; see the module.

    Paper: Wang et al., "Robust Discriminative Representation Learning via Gradient Rescaling: An
    Emphasis Regularisation Perspective", 2019. Eq. 7 prints beta=1 for GCE; Eq. 4 needs 2.
    """

    paper = "Wang et al., Representation Learning via Gradient Rescaling, 2019"
    formula = "dL/dz = (w/2) (pi - e_y),  w = exp(beta p^lam (1 - p))"
    advice = (
        ("unknown noise", "beta=8, lam=0.5"),
        ("clean labels", "beta=2, lam=0"),
        ("CIFAR-10, 20 % noise", "beta=12, lam=0.5"),
        ("CIFAR-10, 40 % noise", "beta=16, lam=1"),
        ("CIFAR-10, 60 to 80 % noise", "beta=12, lam=2"),
        ("CIFAR-100, 20 % noise", "beta=6, lam=0.3"),
        ("CIFAR-100, 40 % noise", "beta=6, lam=0.4"),
        ("CIFAR-100, 60 % noise", "beta=8, lam=0.5"),
        ("Clothing1M, about 38 % noise", "beta=16, lam=1"),
    )

    def __init__(
        self,
        beta: float = 8.0,
        lam: float = 0.5,
        g: str = "exp",
        normalize: str = "weights",
        eps: float = 0.0,
    ) -> None:
        super().__init__()
        self.beta = number("beta", beta, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
        self.lam = number("lam", lam, 0)
        self.g = choice("g", g, ("exp", "identity"))
        self.normalize = choice("normalize", normalize, _NORMALIZE)
        self.eps = number("eps", eps, 0, 1)
        if self.g == "identity" and self.beta <= 0:
            raise ConfigError(f"beta is {beta:g}; with g='identity' allowed: 0 < beta <= 80.")

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give the surrogate, whose gradient is the definition; its value is no loss to report."""
        odds = margin(logits, labels)
        weight = rescaled_weight(odds.detach(), self.beta, self.lam, self.g)
        return surrogate(odds, weight, self, self.normalize, self.eps)

    def potential(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Give the (B,) loss relative to p = 0.5, for curves and tests; see the module."""
        return rescaled_potential(logits, labels, self.beta, self.lam, self.g, self.eps)

    def weight(self, p: Tensor) -> Tensor:
        """Give g(beta p^lam (1 - p)), less what eps lets go of."""
        return _shape(self.beta * p**self.lam * (1 - p), self.g) * held(1 - p, self.eps)


class Imae(RobustLoss):
    """Improved MAE: MAE's direction with a weight that still moves badly fitted samples.

    w = exp(T p(1 - p)), gradient (w / 2)(pi - e_y). The same as GR with beta = T and lam = 1.

    Args:
        T: Spread, 0 to 80; the paper takes 0.5 for clean labels and 8 wherever there is noise.
        normalize: "weights" scales the batch by B / sum(w), as the authors' released layer does;
            "none" is the paper's formula.
        eps: 0, or 1e-6 to let go of fitted samples as the authors' layer does; see the module.

    Paper: Wang et al., "IMAE for Noise-Robust Learning: Mean Absolute Error Does Not Treat Examples
    Equally and Gradient Magnitude's Variance Matters", 2019.
    """

    paper = "Wang et al., IMAE for Noise-Robust Learning, 2019"
    formula = "dL/dz = (w/2) (pi - e_y),  w = exp(T p (1 - p))"
    advice = (
        ("clean labels", "T=0.5"),
        ("any noise rate", "T=8"),
        ("40 % noise and more, fitting clean data less well", "T=16"),
    )

    def __init__(self, T: float = 8.0, normalize: str = "weights", eps: float = 0.0) -> None:
        super().__init__()
        self.T = number("T", T, 0, _LARGEST_EXPONENT)
        self.normalize = choice("normalize", normalize, _NORMALIZE)
        self.eps = number("eps", eps, 0, 1)

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give the surrogate, whose gradient is the definition; its value is no loss to report."""
        odds = margin(logits, labels)
        weight = rescaled_weight(odds.detach(), self.T, 1.0)
        return surrogate(odds, weight, self, self.normalize, self.eps)

    def potential(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Give the (B,) loss relative to p = 0.5, for curves and tests; see the module."""
        return rescaled_potential(logits, labels, self.T, 1.0, eps=self.eps)

    def weight(self, p: Tensor) -> Tensor:
        """Give exp(T p(1 - p)), less what eps lets go of."""
        return _shape(self.T * p * (1 - p), "exp") * held(1 - p, self.eps)
