"""The training loop; it names no algorithm."""

import numpy as np
import torch
from torch import Tensor, nn

from labelclean.errors import TrainingError, shortlist
from labelclean.losses import RobustLoss
from labelclean.models.head import Answer
from labelclean.options import OnProgress, silent
from labelclean.training.batches import Rows, epoch_order, share, split_batches
from labelclean.training.checkpoint import Checkpoints
from labelclean.training.inference import predict_probs
from labelclean.training.loss_schedule import LossSchedule, share_gradients
from labelclean.training.networks import Networks
from labelclean.training.optim import build_optimizer, set_rate
from labelclean.training.runtime import Runtime
from labelclean.training.task import (
    Progress,
    Task,
    TrainingWatcher,
    checkpoint_of,
    current_targets,
    resume,
)
from labelclean.training.turns import Turns


def train(
    task: Task,
    runtime: Runtime,
    recorder: TrainingWatcher | None,
    *,
    checkpoints: Checkpoints | None = None,
    on_progress: OnProgress = silent,
) -> Progress:
    """Train a model and let the recorder watch.

    Args:
        task: What to train.
        runtime: Where.
        recorder: Sees every batch and every epoch; None: nobody watches.
        checkpoints: Where to go on from and to save after every epoch; None: neither.
        on_progress: Told how many epochs are done.

    Returns:
        How far training came; the model holds the last epoch, or the best if it stopped early.

    Raises:
        TrainingError: A loss is not finite.
    """
    settings, epochs = task.settings, task.settings.epochs or 1
    networks = Networks(task.model, task.peers, task.strategy)
    optimizer = build_optimizer(networks.learning, task.loss, settings)
    scaler = torch.amp.GradScaler(runtime.device.type, enabled=runtime.precision == torch.float16)
    progress = resume(task, networks, optimizer, scaler, checkpoints)
    phases = LossSchedule(task, runtime)
    turns = Turns(task, networks, optimizer, scaler, runtime, recorder)
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
        if task.strategy.by_step:
            turns.run(epoch, loss)
        else:
            _steps(task, optimizer, scaler, runtime, recorder, loss, epoch, phases)
        _end_epoch(task, runtime, recorder, progress)
        if checkpoints is not None:
            if recorder is not None:
                recorder.flush()
            if runtime.leads:
                checkpoints.save(checkpoint_of(task, networks, optimizer, scaler, progress))
            runtime.wait()
        on_progress(epoch + 1, epochs)
    if progress.best_model:
        task.model.load_state_dict(progress.best_model)
    return progress


def _steps(
    task: Task,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    runtime: Runtime,
    recorder: TrainingWatcher | None,
    loss: RobustLoss,
    epoch: int,
    phases: LossSchedule,
) -> None:
    """Take the steps of an epoch that no strategy has a word in, part by part of every batch."""
    settings, epochs = task.settings, task.settings.epochs or 1
    order = epoch_order(task.label, seed=runtime.seed, epoch=epoch, stratify=settings.stratify)
    batches = split_batches(order, settings.batch_size or len(order), runtime.processes)
    mine = [_parts(batch, runtime, settings.accumulate) for batch in batches]
    stream = task.inputs.batches((part for parts in mine for part in parts), epoch)
    task.model.train()
    for step, (batch, parts) in enumerate(zip(batches, mine, strict=True)):
        set_rate(optimizer, settings, (epoch + step / len(batches)) / epochs)
        optimizer.zero_grad(set_to_none=True)
        # A batch whose samples all weigh nothing moves nothing.
        total = float(task.weight[batch].sum()) or 1.0
        for part in parts:
            objective = _objective(task, runtime, recorder, loss, next(stream), part, epoch)
            scaler.scale(objective / total).backward()  # type: ignore[no-untyped-call]
        share_gradients(optimizer, runtime, phases.factor())
        scaler.step(optimizer)
        scaler.update()


def _objective(
    task: Task,
    runtime: Runtime,
    recorder: TrainingWatcher | None,
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
    _require_finite(answer.logits.sum(dim=1), task, part, epoch, "the model's answer")
    values = loss(answer.logits, labels, index=index, attention=answer.attention)
    _require_finite(values, task, part, epoch, "the loss")
    if recorder is not None:
        known = _loss_record(loss, answer, labels, values)
        recorder.after_batch(index, answer.logits, labels, known, answer.attention)
    weight = torch.from_numpy(task.weight[part]).to(device)
    total: Tensor = (values * weight).sum()
    return total


def _loss_record(loss: RobustLoss, answer: Answer, labels: Tensor, values: Tensor) -> Tensor | None:
    if not loss.per_sample:
        return None
    if hasattr(loss, "potential"):
        # A loss defined by its gradient trains on a surrogate whose value means nothing.
        return nn.functional.cross_entropy(answer.logits.detach().float(), labels, reduction="none")
    return values.detach()


def _require_finite(values: Tensor, task: Task, part: Rows, epoch: int, what: str) -> None:
    finite = torch.isfinite(values.detach())
    if bool(finite.all()):
        return
    names = shortlist(task.sample_id[part[~finite.cpu().numpy()]])
    raise TrainingError(
        f"epoch {epoch + 1}: {what} is not finite for the samples {names}. Lower "
        f"training.learning_rate (now {task.settings.learning_rate}), or choose another loss."
    )


def _parts(batch: Rows, runtime: Runtime, accumulate: int) -> list[Rows]:
    # As many parts in every process, or they would wait for each other's sums in vain.
    count = max(1, min(accumulate, len(batch) // runtime.processes // 2))
    return np.array_split(share(batch, runtime.rank, runtime.processes), count)


def _end_epoch(
    task: Task, runtime: Runtime, recorder: TrainingWatcher | None, progress: Progress
) -> None:
    progress.epoch += 1
    for buffer in task.model.buffers():
        runtime.same_as_lead(buffer)
    if recorder is not None:
        recorder.after_epoch(progress.epoch, current_targets(task))
    if task.validate is None:
        return
    accuracy = task.validate()
    if accuracy > progress.best_accuracy:
        progress.best_accuracy, progress.best_epoch = accuracy, progress.epoch
        progress.best_model = {
            n: t.detach().cpu().clone() for n, t in task.model.state_dict().items()
        }


def _waited(progress: Progress, task: Task) -> bool:
    if task.validate is None or progress.best_epoch < 0:
        return False
    return progress.epoch - progress.best_epoch >= task.settings.patience
