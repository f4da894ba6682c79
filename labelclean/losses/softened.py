"""Losses that soften the given label: label smoothing and bootstrapping."""

import torch
from torch import Tensor
from torch.nn import functional as F

from labelclean.losses.base import RobustLoss
from labelclean.losses.checks import number
from labelclean.losses.margin import Rowwise, by_blocks, take, with_gradient


def bootstrap(logits: Tensor, labels: Tensor, beta: float, own: Rowwise) -> Tensor:
    """Give (B,) beta times the cross entropy plus (1 - beta) times the model's own part.

    Args:
        logits: (B, C).
        labels: (B,) int64, or (B, C) soft targets.
        beta: Share of the given label.
        own: From (B, C) log p and p to the (B,) values and (B, C) gradients of the own part.
    """

    def rowwise(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        log_p = torch.log_softmax(logits, dim=1)
        p = log_p.exp()
        own_values, rows = own(log_p, p)
        rows.mul_(1 - beta).add_(p, alpha=beta)
        if labels.dim() == 2:
            fit = (labels * log_p).sum(dim=1)
            rows.sub_(labels, alpha=beta)
        else:
            column = labels.unsqueeze(1)
            fit = take(log_p, labels)
            rows.scatter_(1, column, rows.gather(1, column) - beta)
        return (1 - beta) * own_values - beta * fit, rows

    with torch.no_grad():
        values, rows = by_blocks(rowwise, logits, labels)
    return with_gradient(values, (rows, logits))


def _soft(log_p: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    entropy = -(p * log_p).sum(dim=1, keepdim=True)
    return entropy.squeeze(1), (log_p + entropy).mul_(p).neg_()


def _hard(log_p: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    column = log_p.argmax(dim=1, keepdim=True)
    return -log_p.gather(1, column).squeeze(1), p.scatter(1, column, p.gather(1, column) - 1)


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
        return bootstrap(logits, labels, self.beta, _soft)


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
        return bootstrap(logits, labels, self.beta, _hard)
