"""ELR+: early-learning targets from the averaged other network, with mixup."""

import math

import numpy as np
import torch
from torch import Tensor

from labelclean.losses.checks import number
from labelclean.strategies.base import (
    ROW_INPUTS,
    ROW_TARGETS,
    EpochPlan,
    Feed,
    Setting,
    Step,
    Strategy,
    Sweep,
    Turn,
    Verdict,
    draw_mixture,
    one_hot,
)
from labelclean.strategies.co_teaching import needs_depth
from labelclean.strategies.mixup import mixed

_CLAMP = 1e-4


class ElrPlus(Strategy):
    """ELR whose targets come from the average of the other network, with mixup on the inputs.

    Per step of network k: mix inputs and labels; the peer's average says P of the unmixed rows;
    t <- beta t + (1 - beta) P; q = the t of both rows, mixed alike;
    L = L(mixed label) + lam c log(1 - <q, p>); avg <- g avg + (1 - g) net, with
    g = keep exp(-5 (1 - progress / ramp)^2).

    Args:
        beta: How much of a target stays, in [0, 1).
        lam: Weight of the second term, 0 or more.
        alpha: Of the mixing weights, above 0.
        keep: How much of an average stays in the end, in [0, 1).
        ramp: Share of the training in which g rises, above 0.
        rising: Whether the second term rises along the same ramp (CIFAR-100).

    Paper: Liu et al., "Early-Learning Regularization Prevents Memorization of Noisy Labels", 2020.
    Their ramp is 40,000 of 78,000 steps, here half of the training. Averages start as copies (the
    code: at other random weights) and copy batch norms' statistics. The first network's average is
    the result; the authors add both. For 100 classes their code multiplies labels by q first,
    which the paper's formula does not have, and neither have we.
    """

    paper = "Liu et al., Early-Learning Regularization (ELR+), 2020"
    formula = (
        "L = L(mixed y) + lam log(1 - <q, p>),  t <- beta t + (1-beta) P of the peer's average"
    )
    advice = (
        ("CIFAR-10", "beta=0.7, lam=3"),
        ("CIFAR-10, asymmetric noise", "beta=0.9, lam=1"),
        ("CIFAR-100", "beta=0.9, lam=7, rising=true"),
        ("Clothing1M", "beta=0.7, lam=3, keep=0.9999"),
        ("WebVision", "beta=0.7, lam=3, alpha=1.5"),
    )
    changes = frozenset({ROW_TARGETS, ROW_INPUTS})
    networks = 2
    averaged = True
    memory_shape = "2 N x C"
    cost = 2.7

    memory: Tensor

    def __init__(
        self,
        beta: float = 0.7,
        lam: float = 3.0,
        alpha: float = 1.0,
        keep: float = 0.997,
        ramp: float = 0.5,
        rising: bool = False,
    ) -> None:
        super().__init__()
        self.beta = number("beta", beta, 0, 1, open_high=True)
        self.lam = number("lam", lam, 0)
        self.alpha = number("alpha", alpha, 0, open_low=True)
        self.keep = number("keep", keep, 0, 1, open_high=True)
        self.ramp = number("ramp", ramp, 0, open_low=True)
        self.rising = bool(rising)
        self.progress = 0.0

    def unfit(self, setting: Setting) -> str | None:
        """Refuse two convex problems; the loss `elr` does as much for a linear head."""
        return needs_depth(setting, "two networks must come to differ (the loss elr needs one)")

    def bind(self, labels: Tensor, num_classes: int, epochs: int) -> None:
        """Make room for a target a row and network."""
        super().bind(labels, num_classes, epochs)
        shape = (2, len(labels), num_classes)
        self.register_buffer("memory", torch.zeros(shape, device=labels.device))

    def start_epoch(self, epoch: int, sweep: Sweep, generator: np.random.Generator) -> EpochPlan:
        """Let the networks run their epochs one after the other."""
        self.epoch = epoch
        everyone = torch.arange(len(self.labels))
        return EpochPlan((Turn((0,), (everyone,)), Turn((1,), (everyone,))))

    def feed(self, groups: tuple[Tensor, ...], generator: np.random.Generator) -> Feed:
        """Mix every row with another one of the batch."""
        rows = groups[0]
        share, partner = draw_mixture(len(rows), self.alpha, generator)
        return Feed(rows, torch.zeros_like(rows), partner, max(share, 1 - share))

    def judge(self, logits: Tensor, step: Step) -> Verdict:
        """Move the targets, and hold the network to them."""
        me, rows = step.networks[0], step.feed.rows
        self.progress = step.progress
        said = torch.softmax(step.ask(1 - me, True), dim=1).to(self.memory.dtype)
        moved = self.beta * self.memory[me, rows] + (1 - self.beta) * said
        self.memory[me, rows] = moved
        q = mixed(moved.to(logits.dtype), step.feed)
        p = torch.softmax(logits[0], dim=1).clamp(_CLAMP, 1 - _CLAMP)
        weight = self.lam * (ramped(self.progress, self.ramp) if self.rising else 1.0)
        penalty = weight * (1 - (q * p).sum(dim=1)).log().mean()
        given = mixed(one_hot(step.labels, logits.shape[2], logits), step.feed)
        return Verdict(given[None], penalty=penalty)

    def average_decay(self, network: int) -> float:
        """Give how much of an average stays: little at first."""
        return self.keep * ramped(self.progress, self.ramp)

    @property
    def targets(self) -> Tensor | None:
        """The (N, C) mean of both networks' targets."""
        total = self.memory.sum(dim=0)
        return total / total.sum(dim=1, keepdim=True).clamp(min=1e-12)


def ramped(done: float, over: float) -> float:
    """Give exp(-5 (1 - min(done, over) / over)^2), which rises from .0067 to 1."""
    return math.exp(-5 * (1 - min(done, over) / over) ** 2)
