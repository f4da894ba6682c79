"""Which loss is at work when, and what processes must tell each other so that it is one loss."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from labelclean import losses
from labelclean.losses import RobustLoss
from labelclean.training.runtime import Runtime
from labelclean.training.task import Task


class LossSchedule:
    """Which loss is at work in an epoch, and what the processes must tell each other for it."""

    def __init__(self, task: Task, runtime: Runtime) -> None:
        self.loss, self.epochs = task.loss, task.settings.epochs or 1
        # Where a strategy sees whole batches the loss does so in every process, too.
        self.runtime = replace(runtime, processes=1) if task.strategy.by_step else runtime
        self.deferred = task.settings.accumulate > 1
        self.sums: Tensor | None = None
        self.loss.gather = self.runtime.gather
        self.loss.weight_sum_reducer = self._reduce

    def start(self, epoch: int) -> RobustLoss:
        """Give the loss of an epoch: the warm-up loss first, where the loss asks for one."""
        self.loss.start_epoch(epoch)
        warmup = math.ceil(self.loss.warmup_fraction * self.epochs)
        if self.loss.warmup_loss is None or epoch >= warmup:
            return self.loss.train()
        return losses.build(self.loss.warmup_loss).train()

    def _reduce(self, sums: Tensor) -> Tensor:
        if not self.deferred:
            return self.runtime.sum(sums)
        # The sum over a whole batch is known only after its last part, so parts stay as they are
        # and `factor` puts the gradient right.
        self.sums = sums.clone() if self.sums is None else self.sums + sums
        return torch.ones_like(sums)

    def factor(self) -> float:
        """Give what to multiply the gradient of a finished batch by."""
        if self.sums is None:
            return 1.0
        total, count = self.runtime.sum(self.sums)
        self.sums = None
        return float(count / total)


def share_gradients(
    optimizer: torch.optim.Optimizer, runtime: Runtime, factor: float, *, moved_only: bool = False
) -> None:
    """Add gradients over all processes; each gave its part of the same weighted mean.

    Args:
        optimizer: Has the parameters.
        runtime: Has the processes.
        factor: What to multiply the sums by.
        moved_only: Leave parameters without a gradient alone; all processes have the same ones.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if moved_only:
        parameters = [p for p in parameters if p.grad is not None]
    if runtime.processes > 1:
        for p in parameters:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        flat = runtime.sum(torch.cat([p.grad.flatten() for p in parameters]))
        for p, part in zip(
            parameters, torch.split(flat, [p.numel() for p in parameters]), strict=True
        ):
            p.grad.copy_(part.view_as(p))
    if factor != 1.0:
        for p in parameters:
            if p.grad is not None:
                p.grad.mul_(factor)
