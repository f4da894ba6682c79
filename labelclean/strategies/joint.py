"""Joint optimisation: averaged predictions replace the labels, then training starts anew."""

import numpy as np
import torch
from torch import Tensor

from labelclean.losses.checks import number, whole
from labelclean.strategies.base import (
    ROW_TARGETS,
    EpochPlan,
    Setting,
    Step,
    Strategy,
    Sweep,
    Verdict,
    one_hot,
)

_TINY = 1e-12


class Joint(Strategy):
    """Labels and weights in turn: averaged predictions become the targets; then training anew.

    At a constantly high rate a network does not memorise, so its predictions, averaged over the
    last `ring` epochs, may replace the labels from epoch `begin` on. Two terms keep it from
    calling all rows one class, and from targets that say nothing:
    L = L(targets) + alpha KL(prior || mean p) + beta H(p).
    From `anew` on the network starts again at its first weights, on the targets it came to and
    without the two terms.

    Args:
        alpha: Weight of the prior's term, 0 or more.
        beta: Weight of the entropy, 0 or more.
        begin: First epoch (0-based) with targets of its own; None: 22 % of the epochs.
        ring: Epochs to average over.
        anew: Share of the epochs after which training starts again; 1: never.

    Paper: Tanaka et al., "Joint Optimization Framework for Learning with Noisy Labels", 2018. The
    prior is that of the given labels, uniform in the paper. The schedule of learning rates runs
    over the second part; the first keeps the starting rate, which in the paper is another one.
    Predictions are those of training, as in the authors' code.
    """

    paper = "Tanaka et al., Joint Optimization Framework, 2018"
    formula = "L = L(t) + a KL(prior || mean p) + b H(p),  t = mean p of the last epochs"
    advice = (
        ("CIFAR-10, symmetric 70 %", "alpha=1.2, beta=0.8, learning rate 0.08"),
        ("CIFAR-10, asymmetric 40 %", "alpha=0.8, beta=0.4, learning rate 0.03"),
    )
    changes = frozenset({ROW_TARGETS})
    memory_shape = "(ring + 2) N x C"

    ring: Tensor
    current: Tensor
    now: Tensor
    filled: Tensor

    def __init__(
        self,
        alpha: float = 1.2,
        beta: float = 0.8,
        begin: int | None = None,
        ring: int = 10,
        anew: float = 0.625,
    ) -> None:
        super().__init__()
        self.alpha, self.beta = number("alpha", alpha, 0), number("beta", beta, 0)
        self.begin = begin if begin is None else whole("begin", begin, 1)
        self.slots = whole("ring", ring, 1)
        self.anew = number("anew", anew, 0, 1, open_low=True)

    def unfit(self, setting: Setting) -> str | None:
        """Ask for batches whose mean prediction says something about every class."""
        size = min(setting.batch_size, setting.rows)
        if size >= setting.classes:
            return None
        return (
            f"it compares the mean prediction of a batch with the shares of {setting.classes} "
            f"classes, and batches have {size} rows; set training.batch_size to "
            f"{2 * setting.classes} or more"
        )

    def bind(self, labels: Tensor, num_classes: int, epochs: int) -> None:
        """Start with the given labels as targets."""
        super().bind(labels, num_classes, epochs)
        start = one_hot(labels, num_classes, torch.zeros(0, device=labels.device))
        shape = (self.slots, *start.shape)
        self.register_buffer("ring", torch.zeros(shape, dtype=torch.float16, device=labels.device))
        self.register_buffer("current", start)
        self.register_buffer("now", start.clone(), persistent=False)
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))
        self.prior = start.mean(dim=0).clamp(min=_TINY)

    @property
    def first(self) -> int:
        """The first epoch with targets of its own."""
        return max(1, int(0.22 * self.epochs)) if self.begin is None else self.begin

    @property
    def restart(self) -> int:
        """The epoch that starts anew."""
        return max(self.first + 1, round(self.anew * self.epochs))

    def start_epoch(self, epoch: int, sweep: Sweep, generator: np.random.Generator) -> EpochPlan:
        """Keep the first weights, and go back to them when the targets are settled."""
        turns = super().start_epoch(epoch, sweep, generator).turns
        first, restart = epoch < self.restart, self.restart
        return EpochPlan(
            turns,
            remember=epoch == 0,
            restore=epoch == restart,
            constant=first,
            since=0 if first else restart,
        )

    def judge(self, logits: Tensor, step: Step) -> Verdict:
        """Train towards the targets, with what keeps them from collapsing."""
        rows = step.feed.rows
        p = torch.softmax(logits[0], dim=1)
        self.now[rows] = p.detach().to(self.now.dtype)
        targets = self.current[rows].to(logits.dtype)[None]
        if self.epoch >= self.restart:
            return Verdict(targets)
        prior = self.prior.to(p.dtype)
        spread = (prior * (prior / p.mean(dim=0).clamp(min=_TINY)).log()).sum()
        entropy = -(p * torch.log_softmax(logits[0], dim=1)).sum(dim=1).mean()
        return Verdict(targets, penalty=self.alpha * spread + self.beta * entropy)

    def end_epoch(self) -> None:
        """Put the epoch's predictions away; from `begin` on their mean is the target."""
        if self.epoch >= self.restart:
            return
        self.ring[int(self.filled) % self.slots] = self.now.to(self.ring.dtype)
        self.filled += 1
        if self.epoch + 1 >= self.first:
            mean = self.ring[: min(int(self.filled), self.slots)].float().mean(dim=0)
            self.current.copy_(mean / mean.sum(dim=1, keepdim=True))

    @property
    def targets(self) -> Tensor | None:
        """The (N, C) targets, as soon as they are its own."""
        return self.current if int(self.filled) >= self.first else None
