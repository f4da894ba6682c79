"""The contract of a training strategy: what the one loop asks, and what a strategy may answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

ROW_WEIGHTS, ROW_TARGETS, ROW_INPUTS = "weights", "targets", "inputs"
"""What of a step a strategy may change."""
Sweep = Callable[[int, str, Tensor], Tensor]
"""What network k says about (n,) rows, in order, evaluation mode: `logits` or `features`."""


@dataclass(frozen=True, slots=True)
class Feed:
    """What the networks see in a step.

    Args:
        rows: (M,) numbers of the rows; one may stand there more than once, in several views.
        view: (M,) which random view of the row, 0 to `views` - 1.
        partner: (M,) place in this feed of what is mixed in; None: nothing is.
        share: How much of the row's own input stays in the mixture.
        first: How many of the M, from the first on, are of the first group; None: all.
    """

    rows: Tensor
    view: Tensor
    partner: Tensor | None = None
    share: float = 1.0
    first: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """Steps that some networks take side by side.

    Args:
        networks: Which networks learn.
        groups: Row numbers to draw from, each in batches of the training's size; the first says
            how many steps there are, the others start again when they end.
    """

    networks: tuple[int, ...]
    groups: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """An epoch.

    Args:
        turns: One after the other.
        restore: Go back to the weights that were remembered, first of all.
        remember: Remember the weights as the epoch begins, in place of those remembered before.
        constant: Take this epoch at the starting rate; the schedule of rates comes later.
        since: The epoch at which the schedule of rates begins.
    """

    turns: tuple[Turn, ...]
    restore: bool = False
    remember: bool = False
    constant: bool = False
    since: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """What is known beside the logits when a step is judged.

    Args:
        networks: The K networks whose logits are judged.
        feed: What they saw; its numbers on the device of the logits.
        labels: (M,) given labels.
        progress: Share of the whole training that is done, in [0, 1).
        epochs_done: The same in epochs.
        generator: For what is drawn at random; the same in every process.
        ask: Gives (M, C) logits of a network, or of its average, for the feed before mixing;
            evaluation mode, no gradient.
        features: (K, M, D) what the classifier saw, no gradient; only where `needs_features`.
    """

    networks: tuple[int, ...]
    feed: Feed
    labels: Tensor
    progress: float
    epochs_done: float
    generator: np.random.Generator
    ask: Callable[[int, bool], Tensor]
    features: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a step optimises: sum_k [ sum_i weight loss(logits, target) / divisor + penalty ].

    Args:
        targets: (K, M) classes or (K, M, C) soft targets, constant; None: the given labels.
        weights: (K, M), constant; None: all 1. A row of weight 0 never meets the loss.
        divisor: None: the number of rows (the sum of their sample weights).
        penalty: What is added, live; None: nothing.
    """

    targets: Tensor | None = None
    weights: Tensor | None = None
    divisor: float | None = None
    penalty: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """The data and the training a strategy is to work with.

    Args:
        rows: Rows to train on.
        classes: Number of classes.
        batch_size: Rows per step.
        epochs: How often every row is seen.
        linear: Whether the network is one linear layer on features that stay as they are.
    """

    rows: int
    classes: int
    batch_size: int
    epochs: int
    linear: bool


class Strategy(nn.Module):
    """Training as it is: every row counts alike, with the label it was given.

    Every strategy answers these questions, with these answers unless it says otherwise. It sees
    whole batches: with several processes the logits of all are gathered first, so each process
    comes to the same answer. Memory is kept in buffers, by row number; what is drawn comes from
    the generators it is handed, so a run that goes on from a checkpoint draws the same.

    Attributes:
        paper: Authors, title, year.
        formula: The strategy in one line of plain text.
        advice: Pairs (situation, settings) from the papers.
        changes: Which of weights, targets and inputs it changes.
        networks: How many networks learn.
        averaged: Whether an average of every network's weights is kept; the result is then the
            first one's average.
        views: Random views of every row and step.
        needs_features: Whether `judge` wants what the classifier saw.
        by_step: Whether it wants to see steps at all.
        by_parts: Whether weights are shares of the step's direction, so that no row alone has one.
        memory_shape: What it remembers, as text.
        cost: Time of a training, as a multiple of the plain one.
    """

    paper: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    advice: ClassVar[tuple[tuple[str, str], ...]] = ()
    changes: ClassVar[frozenset[str]] = frozenset()
    networks: ClassVar[int] = 1
    averaged: ClassVar[bool] = False
    views: ClassVar[int] = 1
    needs_features: ClassVar[bool] = False
    by_step: ClassVar[bool] = True
    by_parts: ClassVar[bool] = False
    memory_shape: ClassVar[str] = ""
    cost: ClassVar[float] = 1.0

    labels: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("labels", torch.zeros(0, dtype=torch.long), persistent=False)
        self.num_classes = 0
        self.epochs = 1
        self.epoch = 0

    def unfit(self, setting: Setting) -> str | None:
        """Say why it cannot work here and what to do; None: it can."""
        return None

    def bind(self, labels: Tensor, num_classes: int, epochs: int) -> None:
        """Take the (N,) given labels, the number of classes and of epochs."""
        self.labels, self.num_classes, self.epochs = labels, num_classes, epochs

    def start_epoch(self, epoch: int, sweep: Sweep, generator: np.random.Generator) -> EpochPlan:
        """Say who learns from which rows in this 0-based epoch."""
        self.epoch = epoch
        everyone = torch.arange(len(self.labels))
        return EpochPlan((Turn(tuple(range(self.networks)), (everyone,)),))

    def feed(self, groups: tuple[Tensor, ...], generator: np.random.Generator) -> Feed:
        """Say what the networks see of (B,) rows of every group; on the CPU."""
        rows = groups[0]
        return Feed(rows, torch.zeros_like(rows))

    def judge(self, logits: Tensor, step: Step) -> Verdict:
        """Say what a step optimises.

        Args:
            logits: (K, M, C) of the networks that learn, live.
            step: What else is known.
        """
        return Verdict()

    def average_decay(self, network: int) -> float:
        """Give how much of a network's average stays after a step; asked where `averaged`."""
        return 0.0

    def end_epoch(self) -> None:
        """Take note that all steps of an epoch are done."""

    @property
    def targets(self) -> Tensor | None:
        """The (N, C) targets it has come to, by row, or None."""
        return None


class Plain(Strategy):
    """Train on every row with its given label; nothing is chosen or exchanged."""

    paper = "none"
    formula = "mean of the loss"
    by_step = False


def given_label_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Give (..., M) -log p(y|x) of (..., M, C) logits, constant: what rows are chosen by."""
    log_p = torch.log_softmax(logits.detach(), dim=-1)
    picked = labels.expand(logits.shape[:-1]).unsqueeze(-1)
    return -log_p.gather(-1, picked).squeeze(-1)


def one_hot(labels: Tensor, num_classes: int, like: Tensor) -> Tensor:
    """Give (..., C) one-hot rows in the type and on the device of `like`."""
    rows = torch.nn.functional.one_hot(labels, num_classes)
    return rows.to(device=like.device, dtype=like.dtype)


def draw_mixture(count: int, alpha: float, generator: np.random.Generator) -> tuple[float, Tensor]:
    """Draw a step's mixture: a share from Beta(alpha, alpha), and (count,) partners."""
    share = float(generator.beta(alpha, alpha))
    return share, torch.from_numpy(generator.permutation(count))
