"""A head trained on features in memory with any loss: cheap evidence, no files, one process."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from labelclean.losses import RobustLoss
from labelclean.models.head import Head
from labelclean.records.recorder import Recorder, in_memory
from labelclean.records.records import Records
from labelclean.training.inference import predict_probs
from labelclean.training.loop import train
from labelclean.training.runtime import Runtime, one_thread_each
from labelclean.training.settings import TrainSettings
from labelclean.training.task import Features, Inputs, Subset, Task

HIDDEN_BEHIND_ATTENTION = 256


def train_quick_head(
    features: NDArray[np.float32],
    label: NDArray[np.int64],
    weight: NDArray[np.float32],
    num_classes: int,
    loss: RobustLoss,
    *,
    seed: int,
    epochs: int | None = None,
) -> Records:
    """Train one head and give what it said about every row.

    Args:
        features: (N, D) scaled features.
        label: (N,) labels to train with.
        weight: (N,) how much a row counts.
        num_classes: C.
        loss: A new loss; it is bound here.
        seed: Seed of the first weights and of the order of the rows.
        epochs: Passes over the data; None: the default of head mode.
    """
    runtime = Runtime(torch.device("cpu"), seed=seed)
    settings = TrainSettings(epochs=epochs).resolved("head", len(label))
    hidden = HIDDEN_BEHIND_ATTENTION if loss.needs_attention else 0
    recorder = Recorder(label, settings.epochs or 1, allocate=in_memory, device=runtime.device)
    with runtime.seeded(), one_thread_each():
        model = Head(features.shape[1], num_classes, hidden=hidden, attention=loss.needs_attention)
        train_head(model, features, label, weight, loss, settings, runtime, recorder=recorder)
        return recorder.freeze(
            predict_probs(model, Features(features), runtime),
            embedding=None,
            targets=None if loss.targets is None else loss.targets.numpy(),
        )


def train_head(
    model: Head,
    features: NDArray[np.floating],
    label: NDArray[np.int64],
    weight: NDArray[np.float32],
    loss: RobustLoss,
    settings: TrainSettings,
    runtime: Runtime,
    *,
    recorder: Recorder | None = None,
    held_out: NDArray[np.int64] | None = None,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Train a head in place; call it inside `Runtime.seeded`.

    Args:
        model: The head, of the features' type.
        features: (N, D) scaled features.
        label: (N,) labels to train with.
        weight: (N,) how much a row counts.
        loss: A new loss; it is bound here.
        settings: Resolved settings.
        runtime: Where to compute.
        recorder: Watches the rows trained on; None: nobody watches.
        held_out: Rows that are not trained on: their accuracy tells when to stop; None: never.
        tell: Told how many epochs are done.
    """
    inputs: Inputs = Features(features)
    validate = None
    if held_out is not None:
        others, given = Subset(inputs, held_out), label[held_out]
        rows = np.setdiff1d(np.arange(len(label)), held_out)
        inputs, label, weight = Subset(inputs, rows), label[rows], weight[rows]

        def validate() -> float:
            return float((predict_probs(model, others, runtime).argmax(1) == given).mean())

    loss.bind(len(label), model.classifier.out_features, settings.epochs)
    names = np.arange(len(label)).astype(str).astype(object)
    task = Task(model, inputs, label, weight, names, loss, settings, validate)
    train(task, runtime, recorder, tell=tell)
