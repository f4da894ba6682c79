"""Losses that soften the given label: label smoothing and bootstrapping."""

import torch
from torch import Tensor
from torch.nn import functional as F

from labelclean.losses.base import RobustLoss
from labelclean.losses.checks import number
from labelclean.losses.margin import by_blocks, cross_entropy, with_gradient


def entropy(logits: Tensor) -> Tensor:
    """Give the (B,) entropy H of the predictions; the gradient is -p_j (log p_j + H)."""

    def rowwise(logits: Tensor) -> tuple[Tensor, Tensor]:
        log_p = torch.log_softmax(logits, dim=1)
        p = log_p.exp()
        values = -(p * log_p).sum(dim=1, keepdim=True)
        return values.squeeze(1), log_p.add_(values).mul_(p).neg_()

    with torch.no_grad():
        values, rows = by_blocks(rowwise, logits)
    return with_gradient(values, (rows, logits))


class LabelSmoothing(RobustLoss):
    """Label smoothing: cross entropy with a share of the target spread over all classes.

    Target (1 - eps) e_y + eps / C, gradient p - target.

    Args:
        eps: 0 <= eps <= 1.

    Paper: Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2016.
    """

    paper = "Szegedy et al., Rethinking the Inception Architecture, 2016"
    formula = "L = -sum_k ((1 - eps) q_k + eps / C) log p_k"
    soft_targets = True

    def __init__(self, eps: float = 0.1) -> None:
        super().__init__()
        self.eps = number("eps", eps, 0, 1)

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give the cross entropy with the smoothed target."""
        return F.cross_entropy(logits, labels, reduction="none", label_smoothing=self.eps)


class BootstrapSoft(RobustLoss):
    """Soft bootstrap: part of the target is the model's own prediction.

    L = -sum_k (beta q_k + (1 - beta) p_k) log p_k = beta CCE + (1 - beta) H(p). The prediction is
    differentiated: held constant, its gradient would be beta (p - e_y), plain CCE.

    Args:
        beta: 0 <= beta <= 1, the share of the given label.

    Paper: Reed et al., "Training Deep Neural Networks on Noisy Labels with Bootstrapping", 2015.
    """

    paper = "Reed et al., Training on Noisy Labels with Bootstrapping, 2015"
    formula = "L = -sum_k (beta q_k + (1 - beta) p_k) log p_k"
    soft_targets = True

    def __init__(self, beta: float = 0.95) -> None:
        super().__init__()
        self.beta = number("beta", beta, 0, 1)

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give beta CCE + (1 - beta) H(p)."""
        doubt = (1 - self.beta) * entropy(logits)
        return self.beta * cross_entropy(logits, labels) + doubt


class BootstrapHard(RobustLoss):
    """Hard bootstrap: part of the target is the model's own best class.

    Target beta e_y + (1 - beta) e_k with k = argmax p (the lowest of equals), held constant.

    Args:
        beta: 0 <= beta <= 1, the share of the given label.

    Paper: Reed et al., "Training Deep Neural Networks on Noisy Labels with Bootstrapping", 2015.
    """

    paper = "Reed et al., Training on Noisy Labels with Bootstrapping, 2015"
    formula = "L = -beta log p_y - (1 - beta) log max_k p_k"
    soft_targets = True

    def __init__(self, beta: float = 0.8) -> None:
        super().__init__()
        self.beta = number("beta", beta, 0, 1)

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give beta CCE + (1 - beta) times the cross entropy with the predicted class."""
        own = (1 - self.beta) * cross_entropy(logits, logits.detach().argmax(dim=1))
        return self.beta * cross_entropy(logits, labels) + own
