"""The contract of a loss: what training, ranking and the command line may ask of it."""

import math
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

from labelclean.errors import ConfigError
from labelclean.losses.checks import check_index, check_labels, check_logits, whole
from labelclean.losses.memory import SampleMemory

_CURVE_POINTS = 400_001


def _alone(index: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    return index, rows


def _unreduced(sums: Tensor) -> Tensor:
    return sums


class RobustLoss(nn.Module):
    """One value a sample; whoever trains averages.

    A member of the family writes `__init__` (hyper-parameters) and `compute`; all else has a
    default. Logits below float64 are computed in float32, also inside autocast. Safe under
    `torch.compile` with its default `fullgraph=False`: the checks at the door break the graph.

    Attributes:
        paper: Authors, title, year.
        formula: The loss in one line of plain text.
        advice: Pairs (situation, settings) from the papers.
        soft_targets: Whether labels may be (B, C) soft targets.
        needs_attention: Whether `forward` needs the attention logits.
        per_sample: False for a batch loss, whose value is repeated for every sample.
        memory_shape: What it remembers, as text: "N x C", "N", "C x C", or nothing.
        symmetric: Whether the sum over all labels is a constant.
        bounded: Whether the value has an upper bound.
        signals: The per-sample signals it contributes to ranking.
        warmup_loss: Loss to train with first, or None.
        warmup_fraction: Share of the epochs that belongs to the warm-up loss.
        step_scale: How much larger a step the loss's own parameters want than the model's head.
        gather: Replaces the (index, rows) of this process by those of all; set by the engine.
        weight_sum_reducer: Reduces a small tensor of sums over all processes; set by the engine.
    """

    paper: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    advice: ClassVar[tuple[tuple[str, str], ...]] = ()
    soft_targets: ClassVar[bool] = False
    needs_attention: ClassVar[bool] = False
    per_sample: ClassVar[bool] = True
    memory_shape: ClassVar[str] = ""
    signals: ClassVar[tuple[str, ...]] = ("p_given",)
    warmup_fraction: float = 0.0
    step_scale: ClassVar[float] = 1.0
    symmetric: bool = False
    bounded: bool = False
    warmup_loss: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self.gather: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = _alone
        self.weight_sum_reducer: Callable[[Tensor], Tensor] = _unreduced
        self.epoch = 0
        self.epochs: int | None = None
        self.num_samples: int | None = None

    def forward(
        self,
        logits: Tensor,
        labels: Tensor,
        index: Tensor | None = None,
        attention: Tensor | None = None,
    ) -> Tensor:
        """Give the loss of every sample.

        Args:
            logits: (B, C).
            labels: (B,) int64, or (B, C) soft targets where `soft_targets`.
            index: (B,) int64 sample ids, stable over the epochs; losses that remember need them.
            attention: (B,) attention logits; required where `needs_attention`.

        Returns:
            (B,) values, float64 for float64 logits and float32 for anything lower.

        Raises:
            DataError: An argument is missing, misshapen, out of range or not finite.
            ConfigError: The loss needs `bind` or an estimate it has not received.
        """
        check_logits(logits)
        batch, classes = logits.shape
        check_labels(labels, batch, classes, self.soft_targets)
        with torch.autocast(logits.device.type, enabled=False):
            if logits.dtype != torch.float64:
                logits = logits.float()
            if labels.is_floating_point():
                # The door allows rounding; inside, every formula may rely on a sum of 1.
                labels = labels.to(logits.dtype)
                labels = labels / labels.sum(dim=1, keepdim=True)
            else:
                labels = labels.long()
            return self.compute(logits, labels, index, attention)

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give the (B,) values of checked arguments; the one method every loss writes."""
        raise NotImplementedError

    def sample_ids(self, index: Tensor | None, batch: int) -> Tensor:
        """Give the checked (B,) sample ids of a loss that remembers samples."""
        if self.num_samples is None:
            raise ConfigError(
                "this loss remembers every sample: call bind(num_samples, num_classes) first."
            )
        return check_index(index, batch, self.num_samples)

    def bind(self, num_samples: int, num_classes: int, epochs: int | None = None) -> None:
        """Tell the loss the size of the data and, where known, the number of epochs."""
        self.num_samples = whole("num_samples", num_samples, 1)
        whole("num_classes", num_classes, 2)
        self.epochs = None if epochs is None else whole("epochs", epochs, 1)
        memory = getattr(self, "memory", None)
        if isinstance(memory, SampleMemory):
            memory.bind(num_samples, num_classes)

    def start_epoch(self, epoch: int) -> None:
        """Tell the loss that the 0-based `epoch` begins."""
        self.epoch = whole("epoch", epoch, 0)

    def wants_probabilities(self, epoch: int) -> bool:
        """Say whether `receive_probabilities` should be called at the start of this epoch."""
        return False

    def receive_probabilities(self, probs: Tensor, labels: Tensor) -> None:
        """Take the model's predictions for all samples.

        Args:
            probs: (N, C) evaluation-mode probabilities, by sample id.
            labels: (N,) int64 given labels.
        """

    @property
    def targets(self) -> Tensor | None:
        """The (N, C) remembered targets by sample id, or None."""
        memory = getattr(self, "memory", None)
        return memory.targets if isinstance(memory, SampleMemory) else None

    def weight(self, p: Tensor) -> Tensor | None:
        """Give the L1 norm of the logit gradient as a function of p = p(y|x), or None.

        Args:
            p: Any shape, in [0, 1].
        """
        return None

    def focus(self) -> float | None:
        """Give the emphasis focus: the p with the largest weight; None without a single one."""
        p = torch.linspace(0, 1, _CURVE_POINTS, dtype=torch.float64)
        weight = self.weight(p)
        if weight is None:
            return None
        top = weight.amax()
        winners = p[weight >= top * (1 - 1e-13)]
        # A flat or two-peaked curve has no focus to speak of.
        return float(winners.mean()) if float(winners[-1] - winners[0]) < 1e-3 else None

    def spread(self) -> float | None:
        """Give the emphasis spread: the variance of the weight for p uniform in (0, 1), or None."""
        p = torch.linspace(0, 1, _CURVE_POINTS, dtype=torch.float64)
        weight = self.weight(p)
        if weight is None:
            return None
        mean = torch.trapezoid(weight, p)
        return float(torch.trapezoid((weight - mean) ** 2, p))


def resolve_start(start: int | None, epochs: int | None) -> int:
    """Resolve a `start` of None: 12 % of the epochs rounded up, never before epoch 1."""
    if start is not None:
        return start
    return max(1, math.ceil(12 * (epochs or 1) / 100))
