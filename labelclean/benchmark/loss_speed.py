"""How long a step of each loss takes beside torch's own cross entropy."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from labelclean.losses import LOSSES, build

# Promised ratios to torch's cross entropy; the losses people train with most are held tighter.
LIMIT = 3.5
TIGHT_LIMITS = dict.fromkeys(("gce", "mae", "sce", "imae", "gr"), 2.0)
_NOISE = 0.4


@dataclass(frozen=True, slots=True)
class LossSpeed:
    """One line of the table.

    Attributes:
        name: The loss.
        milliseconds: Median time of one forward and backward pass.
        ratio: Median, over the rounds, of its time divided by cross entropy's in the same round.
        limit: The ratio we promise.
    """

    name: str
    milliseconds: float
    ratio: float
    limit: float


def measure_loss_speed(
    batch: int = 4096, classes: int = 1000, rounds: int = 15, seed: int = 0
) -> list[LossSpeed]:
    """Time forward plus backward of every per-sample loss on (batch, classes) float32 logits.

    Losses take turns within a round, so that a busy machine slows all alike. Losses with memory are
    timed in the epochs in which they update it.

    Returns:
        Cross entropy first, under the name "torch cross_entropy", then the catalogue's order.
    """
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(batch, classes, generator=generator)
    labels = torch.randint(classes, (batch,), generator=generator)
    steps = {"torch cross_entropy": _reference(labels)}
    steps |= {name: step for name in LOSSES if (step := _step(name, labels, classes)) is not None}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds + 1):
        for name, step in steps.items():
            seconds = _time(step, logits)
            if turn:  # the first round warms caches and allocators
                times[name].append(seconds)
    reference = times["torch cross_entropy"]
    return [
        LossSpeed(
            name=name,
            milliseconds=1000 * statistics.median(own),
            ratio=statistics.median(a / b for a, b in zip(own, reference, strict=True)),
            limit=TIGHT_LIMITS.get(name, LIMIT),
        )
        for name, own in times.items()
    ]


def _reference(labels: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda logits: F.cross_entropy(logits, labels, reduction="none")


def _step(name: str, labels: Tensor, classes: int) -> Callable[[Tensor], Tensor] | None:
    params: dict[str, object] = {}
    if "T" in LOSSES.parameters(name) and LOSSES.parameters(name)["T"] is None:
        params["T"] = symmetric_transition(classes, _NOISE)
    loss = build(name, **params)
    if not loss.per_sample:
        return None
    loss.bind(len(labels), classes, epochs=1)
    loss.start_epoch(1)
    index = torch.arange(len(labels))
    attention = torch.zeros(len(labels))
    return lambda logits: loss(logits, labels, index=index, attention=attention)


def _time(step: Callable[[Tensor], Tensor], logits: Tensor) -> float:
    leaf = logits.detach().requires_grad_()
    begin = time.perf_counter()
    step(leaf).mean().backward()  # type: ignore[no-untyped-call]
    return time.perf_counter() - begin


def symmetric_transition(classes: int, rate: float) -> Tensor:
    """Give the (C, C) matrix of symmetric noise: `rate` spread evenly over the other classes."""
    other = rate / (classes - 1)
    return torch.full((classes, classes), other).fill_diagonal_(1 - rate)
