"""Generalised cross entropy and its truncated form."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from labelclean.errors import ConfigError
from labelclean.losses.base import RobustLoss
from labelclean.losses.checks import number
from labelclean.losses.margin import margin, take


def power_loss(log_p: Tensor, q: float) -> Tensor:
    """Give L_q = (1 - p^q) / q from log p; expm1 keeps the limit q -> 0, which is -log p."""
    return -torch.expm1(q * log_p) / q


def truncated_power_loss(log_p: Tensor, gate: Tensor, q: float, k: float) -> Tensor:
    """Give L_q(p) where the (B,) bool gate is open, and the constant L_q(k) where it is shut."""
    return torch.where(gate, power_loss(log_p, q), -math.expm1(q * math.log(k)) / q)


class Gce(RobustLoss):
    """Generalised cross entropy: between CCE (q -> 0) and half of MAE (q = 1).

    L_q = (1 - p^q) / q, gradient p^q (p - e_y), weight 2 p^q (1 - p), focus q / (1 + q).

    Args:
        q: 0 < q <= 1; larger is more robust and slower to fit.

    Paper: Zhang and Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with
    Noisy Labels", 2018.
    """

    paper = "Zhang & Sabuncu, Generalized Cross Entropy, 2018"
    formula = "L = (1 - p^q) / q"
    advice = (("any noise rate", "q=0.7"),)
    bounded = True

    def __init__(self, q: float = 0.7) -> None:
        super().__init__()
        self.q = number("q", q, 0, 1, open_low=True)
        self.symmetric = self.q == 1

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give L_q."""
        return power_loss(F.logsigmoid(margin(logits, labels)), self.q)

    def weight(self, p: Tensor) -> Tensor:
        """Give 2 p^q (1 - p)."""
        return 2 * p**self.q * (1 - p)


class GceTruncated(RobustLoss):
    """Truncated GCE: samples the model does not believe (p <= k) are set aside, and may return.

    L = L_q(p) for kept samples, the constant L_q(k) for the others. Which samples are kept is
    decided from evaluation-mode predictions at the start of some epochs and frozen in between;
    there is no gate inside a step. All are kept until the first such prune.

    The schedule is that of the authors' 120 epochs, scaled: plain GCE for the first third, then a
    prune every twelfth of the epochs. With an unknown number of epochs: from epoch 1, every epoch.

    Args:
        q: 0 < q <= 1, as in GCE.
        k: 0 < k < 1, the smallest p a sample needs to be kept.

    Paper: Zhang and Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with
    Noisy Labels", 2018. We add the constant L_q(k) to the authors' training value
    v (L_q(p) - L_q(k)), which leaves the gradient and is the printed formula. Pruning with the
    model that is best on a validation split, as they do, is the caller's choice.
    """

    paper = "Zhang & Sabuncu, Generalized Cross Entropy, 2018"
    formula = "L = (1 - p^q) / q for kept samples, (1 - k^q) / q for the others"
    advice = (("any noise rate", "q=0.7, k=0.5"),)
    memory_shape = "N"
    bounded = True
    warmup_loss = "gce"
    warmup_fraction = 1 / 3

    def __init__(self, q: float = 0.7, k: float = 0.5) -> None:
        super().__init__()
        self.q = number("q", q, 0, 1, open_low=True)
        self.k = number("k", k, 0, 1, open_low=True, open_high=True)
        self.register_buffer("mask", torch.ones(0, dtype=torch.bool))
        self.mask: Tensor

    def bind(self, num_samples: int, num_classes: int, epochs: int | None = None) -> None:
        """Allocate the mask, all samples kept."""
        super().bind(num_samples, num_classes, epochs)
        self.mask = self.mask.new_ones(num_samples)

    def wants_probabilities(self, epoch: int) -> bool:
        """Say whether this epoch begins with a prune."""
        epochs = self.epochs or 1
        start = max(1, math.ceil(epochs * self.warmup_fraction))
        return epoch >= start and (epoch - start) % max(1, round(epochs / 12)) == 0

    def receive_probabilities(self, probs: Tensor, labels: Tensor) -> None:
        """Prune: keep exactly the samples with p_y > k."""
        if len(probs) != len(self.mask):
            raise ConfigError(
                f"received probabilities of {len(probs)} samples; "
                f"bind({len(probs)}, {probs.shape[1]}) comes first."
            )
        self.mask.copy_(take(probs, labels) > self.k)

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give L_q(p) for kept samples, L_q(k) for the others."""
        index = self.sample_ids(index, len(logits))
        log_p = F.logsigmoid(margin(logits, labels))
        return truncated_power_loss(log_p, self.mask[index], self.q, self.k)

    def weight(self, p: Tensor) -> Tensor:
        """Give GCE's weight for p > k and 0 below, the state right after a prune."""
        return torch.where(p > self.k, 2 * p**self.q * (1 - p), 0)
