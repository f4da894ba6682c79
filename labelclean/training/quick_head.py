"""A head trained on features in memory with any loss: cheap evidence, no files, one process."""

import numpy as np
import torch
from numpy.typing import NDArray

from labelclean.losses import RobustLoss
from labelclean.models.head import HIDDEN_BEHIND_ATTENTION, Head
from labelclean.records.recorder import Recorder, in_memory
from labelclean.records.records import Records
from labelclean.training.inference import predict_probs
from labelclean.training.loop import train
from labelclean.training.runtime import Runtime, one_thread_each
from labelclean.training.settings import TrainSettings
from labelclean.training.task import Features, Task


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
    passes = settings.epochs or 1
    with runtime.seeded(), one_thread_each():
        hidden = HIDDEN_BEHIND_ATTENTION if loss.needs_attention else 0
        model = Head(features.shape[1], num_classes, hidden=hidden, attention=loss.needs_attention)
        loss.bind(len(label), num_classes, passes)
        inputs = Features(features)
        recorder = Recorder(
            label,
            passes,
            allocate=in_memory,
            device=runtime.device,
            add=runtime.sum,
            writes=True,
        )
        names = np.arange(len(label)).astype(str).astype(object)
        train(Task(model, inputs, label, weight, names, loss, settings), runtime, recorder)
        return recorder.freeze(
            predict_probs(model, inputs, runtime),
            epochs=passes,
            embedding=None,
            targets=None if loss.targets is None else loss.targets.numpy(),
        )
