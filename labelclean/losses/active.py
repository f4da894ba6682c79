"""Sums of an active and a passive part: SCE and the normalised losses."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from labelclean.errors import ConfigError
from labelclean.losses.base import RobustLoss
from labelclean.losses.checks import number
from labelclean.losses.margin import by_blocks, margin, odds_and_rivals, with_gradient

_LOG_ZERO = math.log(1e-4)  # the released code's stand-in for log 0


def active_passive(logits: Tensor, labels: Tensor, alpha: float, beta: float) -> Tensor:
    """Give (B,) alpha NCE + beta (1 - p_y), where NCE = log p_y / sum_k log p_k is in (0, 1).

    With A = log p_y and S = sum_k log p_k the gradient of NCE is (e_y - p) / S - A (1 - C p) / S^2.
    """
    classes = logits.shape[1]

    def rowwise(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        column = labels.unsqueeze(1)
        odds, rivals = (part.view(len(part), -1) for part in odds_and_rivals(logits, labels))
        given = logits.gather(1, column)
        A, rest = F.logsigmoid(odds), torch.sigmoid(-odds)
        S = (logits - given).sum(dim=1, keepdim=True) + classes * A
        everywhere = -alpha * A / S**2
        at_label = alpha / S - beta * A.exp()
        by_p = -at_label - classes * everywhere
        rows = rivals.mul_(by_p * rest).add_(everywhere)
        rows.scatter_(1, column, by_p * A.exp() + everywhere + at_label)
        return (alpha * A / S + beta * rest).squeeze(1), rows

    with torch.no_grad():
        values, rows = by_blocks(rowwise, logits, labels)
    return with_gradient(values, (rows, logits))


def _two_parts(alpha: object, beta: object) -> tuple[float, float]:
    parts = number("alpha", alpha, 0), number("beta", beta, 0)
    if parts == (0, 0):
        raise ConfigError("alpha and beta are both 0; at least one must be above 0.")
    return parts


class Sce(RobustLoss):
    """Symmetric cross entropy: CCE plus the reverse cross entropy, a scaled MAE.

    L = -alpha log p - beta A (1 - p), gradient (alpha - beta A p)(p - e_y). With A = -2 the
    second part is exactly MAE.

    Args:
        alpha: 0 or more; 0.1 for CIFAR-10, 6 for CIFAR-100.
        beta: 0 or more; 1 for CIFAR-10, 0.1 for CIFAR-100.
        A: Below 0, stands for log 0.

    Paper: Wang et al., "Symmetric Cross Entropy for Robust Learning with Noisy Labels", 2019. The
    released code clamps the one-hot label at 1e-4 and so has A = ln 1e-4 = -9.21; the authors say
    -4, which is our default.
    """

    paper = "Wang et al., Symmetric Cross Entropy, 2019"
    formula = "L = -alpha log p - beta A (1 - p)"
    advice = (
        ("MNIST", "alpha=0.01, beta=1"),
        ("CIFAR-10", "alpha=0.1, beta=1"),
        ("CIFAR-100", "alpha=6, beta=0.1"),
        ("the released code", "A=-9.21034"),
    )

    def __init__(self, alpha: float = 0.1, beta: float = 1.0, A: float = -4.0) -> None:
        super().__init__()
        self.alpha, self.beta = _two_parts(alpha, beta)
        self.A = number("A", A, high=0, open_high=True)
        self.symmetric = self.bounded = self.alpha == 0

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give alpha CCE + beta RCE."""
        odds = margin(logits, labels)
        return -self.alpha * F.logsigmoid(odds) - self.beta * self.A * torch.sigmoid(-odds)

    def weight(self, p: Tensor) -> Tensor:
        """Give 2(1 - p)(alpha - beta A p)."""
        return 2 * (1 - p) * (self.alpha - self.beta * self.A * p)


class NceRce(RobustLoss):
    """Normalised cross entropy plus reverse cross entropy: active and passive, both symmetric.

    L = alpha log p_y / sum_k log p_k - beta ln(1e-4) (1 - p_y).

    Args:
        alpha: 0 or more; 1 for CIFAR-10, 10 for CIFAR-100.
        beta: 0 or more; 1 for CIFAR-10, 0.1 for CIFAR-100.

    Paper: Ma et al., "Normalized Loss Functions for Deep Learning with Noisy Labels", 2020.
    """

    paper = "Ma et al., Normalized Loss Functions, 2020"
    formula = "L = alpha log p / sum_k log p_k + 9.21 beta (1 - p)"
    advice = (
        ("MNIST", "alpha=1, beta=10"),
        ("CIFAR-10", "alpha=1, beta=1"),
        ("CIFAR-100", "alpha=10, beta=0.1"),
        ("WebVision", "alpha=50, beta=0.1"),
    )
    symmetric = True
    bounded = True

    def __init__(self, alpha: float = 1.0, beta: float = 1.0) -> None:
        super().__init__()
        self.alpha, self.beta = _two_parts(alpha, beta)

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give alpha NCE + beta RCE."""
        return active_passive(logits, labels, self.alpha, -_LOG_ZERO * self.beta)


class NceMae(RobustLoss):
    """Normalised cross entropy plus mean absolute error: active and passive, both symmetric.

    L = alpha log p_y / sum_k log p_k + beta (1 - p_y); this paper's MAE is half of ours.

    Args:
        alpha: 0 or more; 1 for CIFAR-10, 10 for CIFAR-100.
        beta: 0 or more; 1 for both.

    Paper: Ma et al., "Normalized Loss Functions for Deep Learning with Noisy Labels", 2020.
    """

    paper = "Ma et al., Normalized Loss Functions, 2020"
    formula = "L = alpha log p / sum_k log p_k + beta (1 - p)"
    advice = (
        ("MNIST", "alpha=1, beta=10"),
        ("CIFAR-10", "alpha=1, beta=1"),
        ("CIFAR-100", "alpha=10, beta=1"),
        ("WebVision", "alpha=50, beta=1"),
    )
    symmetric = True
    bounded = True

    def __init__(self, alpha: float = 1.0, beta: float = 1.0) -> None:
        super().__init__()
        self.alpha, self.beta = _two_parts(alpha, beta)

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give alpha NCE + beta (1 - p)."""
        return active_passive(logits, labels, self.alpha, self.beta)
