"""Jensen-Shannon loss."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from labelclean.losses.base import RobustLoss
from labelclean.losses.checks import number
from labelclean.losses.margin import margin


class Js(RobustLoss):
    """Jensen-Shannon divergence of label and prediction: CCE (pi -> 0) to half of MAE (pi -> 1).

    m = pi e_y + (1 - pi) p, L = [pi KL(e_y || m) + (1 - pi) KL(p || m)] / Z with
    Z = -(1 - pi) log(1 - pi); a function of p_y alone.

    Args:
        pi: 0 < pi < 1; 0.1 for clean labels up to 0.9 for heavy noise.

    Paper: Englesson and Azizpour, "Generalized Jensen-Shannon Divergence Loss for Learning with
    Noisy Labels", 2021. Without their clamps: the closed form needs none.
    """

    paper = "Englesson & Azizpour, Generalized Jensen-Shannon Divergence, 2021"
    formula = "L = [pi KL(e_y || m) + (1 - pi) KL(p || m)] / Z,  m = pi e_y + (1 - pi) p"
    advice = (
        ("CIFAR-10, clean", "pi=0.1"),
        ("CIFAR-10, 20 to 40 % noise", "pi=0.7"),
        ("CIFAR-10, 60 to 80 % noise", "pi=0.9"),
        ("CIFAR-10, asymmetric noise", "pi=0.3"),
        ("CIFAR-100, up to 20 % noise", "pi=0.1"),
        ("CIFAR-100, 40 % noise", "pi=0.3"),
        ("CIFAR-100, 60 % or asymmetric noise", "pi=0.5"),
    )
    bounded = True

    def __init__(self, pi: float = 0.5) -> None:
        super().__init__()
        self.pi = number("pi", pi, 0, 1, open_low=True, open_high=True)
        self._log_rest = math.log1p(-self.pi)
        self._scale = -(1 - self.pi) * self._log_rest

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give the closed form, with log(m_y / ((1 - pi) p_y)) as a softplus of the log-odds."""
        odds = margin(logits, labels)
        log_p = F.logsigmoid(odds)
        log_pi = math.log(self.pi)
        log_mix = torch.logaddexp(torch.full_like(log_p, log_pi), self._log_rest + log_p)
        # p log(p / m) = -p log(1 + pi (1 - p) / p), exact for pi -> 0 and for p -> 0.
        from_model = (
            log_p.exp() * F.logsigmoid(odds - log_pi) - torch.sigmoid(-odds) * self._log_rest
        )
        return (-self.pi * log_mix + (1 - self.pi) * from_model) / self._scale

    def weight(self, p: Tensor) -> Tensor:
        """Give 2(1 - p) p log(1 + pi / ((1 - pi) p)) / -log(1 - pi)."""
        rest = (1 - self.pi) * p
        return (
            2 * (1 - p) * (torch.xlogy(p, rest + self.pi) - torch.xlogy(p, rest)) / -self._log_rest
        )
