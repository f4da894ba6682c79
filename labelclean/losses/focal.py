"""Focal loss."""

import torch
from torch import Tensor
from torch.nn import functional as F

from labelclean.losses.base import RobustLoss
from labelclean.losses.checks import number
from labelclean.losses.margin import margin


class Focal(RobustLoss):
    """Focal loss: weights hard samples up, so it is a negative control under label noise.

    L = -(1 - p)^gamma log p. The factor (1 - p)^gamma is differentiated, not held constant.

    Args:
        gamma: 0 or more; 0 is CCE.

    Paper: Lin et al., "Focal Loss for Dense Object Detection", 2017.
    """

    paper = "Lin et al., Focal Loss, 2017"
    formula = "L = -(1 - p)^gamma log p"

    def __init__(self, gamma: float = 2.0) -> None:
        super().__init__()
        self.gamma = number("gamma", gamma, 0)

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give -(1 - p)^gamma log p."""
        odds = margin(logits, labels)
        return -torch.exp(self.gamma * F.logsigmoid(-odds)) * F.logsigmoid(odds)

    def weight(self, p: Tensor) -> Tensor:
        """Give 2(1 - p) ((1 - p)^gamma - gamma p (1 - p)^(gamma - 1) log p)."""
        q = 1 - p
        return 2 * q**self.gamma * (q - self.gamma * torch.xlogy(p, p))
