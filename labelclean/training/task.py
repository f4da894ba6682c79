"""What a training run is about, and how far it has come."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelclean.losses import RobustLoss
from labelclean.strategies import Plain, Strategy
from labelclean.training.batches import Rows
from labelclean.training.checkpoint import UNFIT, Checkpoint, Checkpoints, damaged
from labelclean.training.networks import Networks
from labelclean.training.settings import TrainSettings


class Inputs(Protocol):
    """Samples as a model takes them: features or pictures, by sample number."""

    def __len__(self) -> int: ...

    def batches(self, batches: Iterable[Rows], epoch: int | None = None) -> Iterator[Tensor]:
        """Give the input of every batch; an epoch asks for that epoch's augmentation."""
        ...


class TrainingWatcher(Protocol):
    """Sees every batch and every epoch of a training."""

    def after_batch(
        self,
        index: Tensor,
        logits: Tensor,
        labels: Tensor,
        losses: Tensor | None,
        attention: Tensor | None,
    ) -> None:
        """Take what the model said about a batch; see `Recorder`."""
        ...

    def after_epoch(self, epoch: int, targets: Tensor | None) -> None:
        """Put an epoch away; every process calls this."""
        ...

    def flush(self) -> None:
        """Bring what was put away to the disk."""
        ...


class Features:
    """Scaled features of some samples, as batches.

    Args:
        matrix: (N, D) floats.
    """

    def __init__(self, matrix: NDArray[Any]) -> None:
        self.matrix = matrix

    def __len__(self) -> int:
        return len(self.matrix)

    def batches(self, batches: Iterable[Rows], epoch: int | None = None) -> Iterator[Tensor]:
        """Give (B, D) features for every batch of sample numbers."""
        for index in batches:
            yield torch.from_numpy(self.matrix[index])


class Subset:
    """Some samples of others.

    Args:
        inputs: All samples.
        rows: (N,) which of them; sample i is `rows[i]` there.
    """

    def __init__(self, inputs: Inputs, rows: Rows) -> None:
        self.inputs, self.rows = inputs, rows

    def __len__(self) -> int:
        return len(self.rows)

    def batches(self, batches: Iterable[Rows], epoch: int | None = None) -> Iterator[Tensor]:
        """Give the input of every batch."""
        return self.inputs.batches((self.rows[index] for index in batches), epoch)


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
        strategy: Bound to the labels; on the runtime's device.
        peers: As many further networks as the strategy wants beside the model.
        verified: (N,) samples that a strategy may neither leave out nor relabel; None: none.
    """

    model: nn.Module
    inputs: Inputs
    label: NDArray[np.int64]
    weight: NDArray[np.float32]
    sample_id: NDArray[np.object_]
    loss: RobustLoss
    settings: TrainSettings
    validate: Callable[[], float] | None = None
    strategy: Strategy = field(default_factory=Plain)
    peers: tuple[nn.Module, ...] = ()
    verified: NDArray[np.bool_] | None = None


@dataclass(slots=True)
class Progress:
    """How far training has come; what a checkpoint must hold beside model, optimiser and loss."""

    epoch: int = -1
    best_epoch: int = -1
    best_accuracy: float = -1.0
    best_model: dict[str, Tensor] = field(default_factory=dict)


def current_targets(task: Task) -> Tensor | None:
    """Give the (N, C) targets that the strategy, else the loss, has come to; None: neither has."""
    targets = task.strategy.targets
    return task.loss.targets if targets is None else targets


def checkpoint_of(
    task: Task,
    networks: Networks,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    progress: Progress,
) -> Checkpoint:
    """Give what must be saved to go on later."""
    state: dict[str, Any] = {
        "optimizer": optimizer.state_dict(),
        "scaler": scaler.state_dict(),
        "loss": task.loss.state_dict(),
        "strategy": task.strategy.state_dict(),
        "networks": networks.state(),
        "best": [progress.best_epoch, progress.best_accuracy],
        "best_model": progress.best_model,
    }
    return Checkpoint(progress.epoch, task.model.state_dict(), state)


def resume(
    task: Task,
    networks: Networks,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    checkpoints: Checkpoints | None,
) -> Progress:
    """Take up the newest checkpoint, or begin.

    Raises:
        DataError: The checkpoint is damaged, or that of another model.
    """
    found = None if checkpoints is None else checkpoints.load()
    if checkpoints is None or found is None:
        return Progress()
    try:
        task.model.load_state_dict(found.model)
        task.loss.load_state_dict(found.state["loss"])
        task.strategy.load_state_dict(found.state["strategy"])
        networks.load(found.state["networks"])
        optimizer.load_state_dict(found.state["optimizer"])
        scaler.load_state_dict(found.state["scaler"])
        best_epoch, best_accuracy = found.state["best"]
        return Progress(found.epoch, best_epoch, best_accuracy, found.state["best_model"])
    except UNFIT as error:
        raise damaged(checkpoints.folder, error) from error
