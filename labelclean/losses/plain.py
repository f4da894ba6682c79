"""The plain losses the papers start from: CCE, MAE and MSE."""

import torch
from torch import Tensor

from labelclean.losses.base import RobustLoss
from labelclean.losses.margin import by_blocks, cross_entropy, margin, with_gradient


class Cce(RobustLoss):
    """Categorical cross entropy: the reference everything is compared with.

    L = -log p_y, or -sum_k q_k log p_k for soft targets; gradient p - e_y, weight 2(1 - p).
    Unbounded: fits wrong labels as eagerly as right ones.

    Paper: Wang et al., "IMAE for Noise-Robust Learning", 2019, Eq. 1, 6, 8.
    """

    paper = "Wang et al., IMAE for Noise-Robust Learning, 2019"
    formula = "L = -log p"
    soft_targets = True

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give -log p_y."""
        return cross_entropy(logits, labels)

    def weight(self, p: Tensor) -> Tensor:
        """Give 2(1 - p)."""
        return 2 * (1 - p)


class Mae(RobustLoss):
    """Mean absolute error: symmetric, hence robust, and prone to underfit.

    L = sum_j |p_j - q_j|, which is 2(1 - p_y) for a hard label; gradient 2 p_y (p - e_y), weight
    4p(1 - p).

    Paper: Ghosh et al., "Robust Loss Functions under Label Noise for Deep Neural Networks", 2017.
    Some code uses 1 - p_y, half of this.
    """

    paper = "Ghosh et al., Robust Loss Functions under Label Noise, 2017"
    formula = "L = 2 (1 - p)"
    soft_targets = True
    symmetric = True
    bounded = True

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give 2(1 - p_y)."""
        if labels.dim() == 2:
            return (torch.softmax(logits, dim=1) - labels).abs().sum(dim=1)
        return 2 * torch.sigmoid(-margin(logits, labels))

    def weight(self, p: Tensor) -> Tensor:
        """Give 4p(1 - p)."""
        return 4 * p * (1 - p)


class Mse(RobustLoss):
    """Mean squared error, the full Brier score.

    L = sum_j (p_j - q_j)^2; with r = p - q the gradient is 2 p_j (r_j - sum_k p_k r_k). It depends
    on all of p, so it has no weight curve. Bounded by 2, not symmetric.

    Paper: Ghosh et al., "Robust Loss Functions under Label Noise for Deep Neural Networks", 2017.
    """

    paper = "Ghosh et al., Robust Loss Functions under Label Noise, 2017"
    formula = "L = sum_j (p_j - q_j)^2"
    soft_targets = True
    bounded = True

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give the Brier score."""
        with torch.no_grad():
            values, rows = by_blocks(_brier, logits, labels)
        return with_gradient(values, (rows, logits))


def _brier(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    p = torch.softmax(logits, dim=1)
    if labels.dim() == 2:
        residual = p - labels
    else:
        column = labels.unsqueeze(1)
        residual = p.scatter(1, column, 0)
        # 1 - p_y by subtraction would be 0 for a well fitted sample.
        residual.scatter_(1, column, -residual.sum(dim=1, keepdim=True))
    values = residual.square().sum(dim=1)
    mean = (p * residual).sum(dim=1, keepdim=True)
    return values, residual.sub_(mean).mul_(p).mul_(2)
