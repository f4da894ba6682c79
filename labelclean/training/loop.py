"""The training loop; it names no algorithm."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelclean import losses
from labelclean.errors import TrainingError, shortlist
from labelclean.losses import RobustLoss
from labelclean.models.classifier import Answer
from labelclean.records.recorder import Recorder
from labelclean.training.batches import Rows, epoch_order, share, split_batches
from labelclean.training.checkpoint import Checkpoint, Checkpoints
from labelclean.training.inference import predict_probs
from labelclean.training.optim import build_optimizer, set_rate
from labelclean.training.runtime import Runtime
from labelclean.training.settings import TrainSettings


class Inputs(Protocol):
    """Samples as a model takes them: features or pictures, by sample number."""

    def __len__(self) -> int: ...

    def batches(self, batches: Iterable[Rows], epoch: int | None = None) -> Iterator[Tensor]:
        """Give the input of every batch; an epoch asks for that epoch's augmentation."""
        ...


@dataclass(frozen=True, slots=True)
class Task:
    """What to train, on what, and how.

    Args:
        model: Answers inputs with `Answer`; on the runtime's device.
        inputs: N samples.
        label: (N,) int64 given labels.
        weight: (N,) float32, how much a sample counts.
        sample_id: (N,) text that names samples to a person.
        loss: Bound to N samples; on the runtime's device.
        settings: Resolved settings.
        validate: Gives the accuracy to stop early by; None: never stop early.
    """

    model: nn.Module
    inputs: Inputs
    label: NDArray[np.int64]
    weight: NDArray[np.float32]
    sample_id: NDArray[np.object_]
    loss: RobustLoss
    settings: TrainSettings
    validate: Callable[[], float] | None = None


@dataclass(slots=True)
class Progress:
    """How far training has come; what a checkpoint must hold beside model, optimiser and loss."""

    epoch: int = -1
    best_epoch: int = -1
    best_accuracy: float = -1.0
    best_model: dict[str, Tensor] = field(default_factory=dict)


def train(
    task: Task,
    runtime: Runtime,
    recorder: Recorder,
    *,
    checkpoints: Checkpoints | None = None,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Progress:
    """Train a model and let the recorder watch.

    Args:
        task: What to train.
        runtime: Where.
        recorder: Sees every batch and every epoch.
        checkpoints: Where to go on from and to save after every epoch; None: neither.
        tell: Told how many epochs are done.

    Returns:
        How far training came; the model holds the last epoch, or the best if it stopped early.

    Raises:
        TrainingError: A loss is not finite.
    """
    settings, epochs = task.settings, task.settings.epochs or 1
    optimizer = build_optimizer(task.model, task.loss, settings)
    scaler = torch.amp.GradScaler(runtime.device.type, enabled=runtime.precision == torch.float16)
    progress = _resume(task, optimizer, scaler, checkpoints)
    phases = _Phases(task.loss, epochs, runtime, settings.accumulate)
    while progress.epoch + 1 < epochs and not _waited(progress, task):
        epoch = progress.epoch + 1
        runtime.seed_epoch(epoch)
        loss = phases.start(epoch)
        if loss.wants_probabilities(epoch):
            probs = predict_probs(task.model, task.inputs, runtime)
            loss.receive_probabilities(
                torch.from_numpy(probs).to(runtime.device),
                torch.from_numpy(task.label).to(runtime.device),
            )
        order = epoch_order(
            task.label, seed=runtime.seed, epoch=epoch, stratify=settings.stratify
        )
        batches = split_batches(order, settings.batch_size or len(order), runtime.processes)
        mine = [_parts(batch, runtime, settings.accumulate) for batch in batches]
        stream = task.inputs.batches((part for parts in mine for part in parts), epoch)
        task.model.train()
        for step, (batch, parts) in enumerate(zip(batches, mine, strict=True)):
            set_rate(optimizer, settings, (epoch + step / len(batches)) / epochs)
            optimizer.zero_grad(set_to_none=True)
            total = float(task.weight[batch].sum())
            for part in parts:
                objective = _objective(task, runtime, recorder, loss, next(stream), part, epoch)
                scaler.scale(objective / total).backward()
            _share_gradients(optimizer, runtime, phases.factor())
            scaler.step(optimizer)
            scaler.update()
        _end_epoch(task, runtime, recorder, progress, loss)
        if checkpoints is not None:
            recorder.flush()
            if runtime.leads:
                checkpoints.save(_checkpoint(task, optimizer, scaler, progress))
            runtime.wait()
        tell(epoch + 1, epochs)
    if progress.best_model:
        task.model.load_state_dict(progress.best_model)
    return progress


def _objective(
    task: Task,
    runtime: Runtime,
    recorder: Recorder,
    loss: RobustLoss,
    batch: Tensor,
    part: Rows,
    epoch: int,
) -> Tensor:
    """Give the weighted sum of a part's losses: the one place that puts samples together."""
    device = runtime.device
    index = torch.from_numpy(part).to(device)
    labels = torch.from_numpy(task.label[part]).to(device)
    with runtime.autocast():
        answer: Answer = task.model(batch.to(device, non_blocking=True))
    if not bool(torch.isfinite(answer.logits).all()):
        raise _not_finite(task, part, epoch, "an answer of the model")
    values = loss(answer.logits, labels, index=index, attention=answer.attention)
    if not bool(torch.isfinite(values).all()):
        raise _not_finite(task, part[~torch.isfinite(values).cpu().numpy()], epoch, "a loss")
    recorder.after_batch(index, answer.logits, labels, _loss_record(loss, answer, labels, values), answer.attention)
    weight = torch.from_numpy(task.weight[part]).to(device)
    return (values * weight).sum()


def _loss_record(
    loss: RobustLoss, answer: Answer, labels: Tensor, values: Tensor
) -> Tensor | None:
    if not loss.per_sample:
        return None
    if hasattr(loss, "potential"):
        # A loss defined by its gradient trains on a surrogate whose value means nothing.
        return nn.functional.cross_entropy(answer.logits.detach().float(), labels, reduction="none")
    return values.detach()


def _not_finite(task: Task, rows: Rows, epoch: int, what: str) -> TrainingError:
    names = shortlist(task.sample_id[rows])
    return TrainingError(
        f"epoch {epoch + 1}: {what} is not finite for the samples {names}. Lower "
        f"training.learning_rate (now {task.settings.learning_rate}), or choose another loss."
    )


def _parts(batch: Rows, runtime: Runtime, accumulate: int) -> list[Rows]:
    mine = share(batch, runtime.rank, runtime.processes)
    return np.array_split(mine, max(1, min(accumulate, len(mine) // 2)))


class _Phases:
    """Which loss is at work in an epoch, and what the processes must tell each other for it."""

    def __init__(self, loss: RobustLoss, epochs: int, runtime: Runtime, accumulate: int) -> None:
        self.loss, self.epochs, self.runtime = loss, epochs, runtime
        self.deferred = accumulate > 1
        self.sums: Tensor | None = None
        loss.gather = runtime.gather
        loss.weight_sum_reducer = self._reduce

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


def _share_gradients(optimizer: torch.optim.Optimizer, runtime: Runtime, factor: float) -> None:
    """Add gradients over all processes; each gave its part of the same weighted mean."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if runtime.processes > 1:
        for p in parameters:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        flat = runtime.sum(torch.cat([p.grad.flatten() for p in parameters]))
        for p, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            p.grad.copy_(part.view_as(p))
    if factor != 1.0:
        for p in parameters:
            if p.grad is not None:
                p.grad.mul_(factor)


def _end_epoch(
    task: Task, runtime: Runtime, recorder: Recorder, progress: Progress, loss: RobustLoss
) -> None:
    progress.epoch += 1
    for buffer in task.model.buffers():
        runtime.same_as_lead(buffer)
    recorder.after_epoch(progress.epoch, loss.targets)
    if task.validate is None:
        return
    accuracy = task.validate()
    if accuracy > progress.best_accuracy:
        progress.best_accuracy, progress.best_epoch = accuracy, progress.epoch
        progress.best_model = {n: t.detach().cpu().clone() for n, t in task.model.state_dict().items()}


def _waited(progress: Progress, task: Task) -> bool:
    if task.validate is None or progress.best_epoch < 0:
        return False
    return progress.epoch - progress.best_epoch >= task.settings.patience


def _checkpoint(
    task: Task, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler, progress: Progress
) -> Checkpoint:
    state: dict[str, Any] = {
        "optimizer": optimizer.state_dict(),
        "scaler": scaler.state_dict(),
        "loss": task.loss.state_dict(),
        "best": [progress.best_epoch, progress.best_accuracy],
        "best_model": progress.best_model,
    }
    return Checkpoint(progress.epoch, task.model.state_dict(), state)


def _resume(
    task: Task,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    checkpoints: Checkpoints | None,
) -> Progress:
    found = None if checkpoints is None else checkpoints.load()
    if found is None:
        return Progress()
    task.model.load_state_dict(found.model)
    task.loss.load_state_dict(found.state["loss"])
    optimizer.load_state_dict(found.state["optimizer"])
    scaler.load_state_dict(found.state["scaler"])
    best_epoch, best_accuracy = found.state["best"]
    return Progress(found.epoch, best_epoch, best_accuracy, found.state["best_model"])
