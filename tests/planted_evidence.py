"""Records of a small training on planted noise: every signal as a network really leaves it."""

from dataclasses import replace
from functools import cache

import numpy as np
import torch

from labelclean.losses import build
from labelclean.models.head import Head
from labelclean.records.recorder import Recorder
from labelclean.records.records import Records
from labelclean.training.inference import predict_probs
from labelclean.training.loop import train
from labelclean.training.runtime import Runtime
from labelclean.training.settings import TrainSettings
from labelclean.training.task import Features, Task

EPOCHS, LATE = 12, 10  # attention rests once the targets have followed the predictions


@cache
def planted_records(count=600, size=5, seed=0) -> tuple[Records, np.ndarray]:
    """Give (records, wrong): what a head trained with `nal` says about partly flipped labels.

    One feature tells who labelled a row: of every third picture a careless person, wrong more often
    than not. The attention sees features alone, so this is all that it can learn from.
    """
    rng = np.random.default_rng(seed)
    true = rng.integers(0, size, count)
    careless = rng.random(count) < 1 / 3
    embedding = (4 * rng.standard_normal((size, 8)))[true] + rng.standard_normal((count, 8))
    embedding[:, 0] = 6 * careless
    # Every second row is a twin of the one before.
    true[1::2], careless[1::2], embedding[1::2] = true[::2], careless[::2], embedding[::2] + 1e-4
    wrong = careless & (rng.random(count) < 0.6)
    label = np.where(wrong, (true + rng.integers(1, size, count)) % size, true)
    matrix = embedding.astype(np.float32)
    runtime = Runtime(torch.device("cpu"), seed=seed)
    settings = TrainSettings(epochs=EPOCHS, batch_size=50, learning_rate=0.01)
    loss = build("nal", start=LATE)
    with runtime.seeded():
        model = Head(8, size, hidden=0, attention=True)
        training = settings.resolved("head", count)
        loss.bind(count, size, training.epochs)
        names = np.arange(count).astype(object)
        weight = np.ones(count, np.float32)
        task = Task(model, Features(matrix), label, weight, names, loss, training)
        recorder = Recorder(label, training.epochs)
        train(task, runtime, recorder)
    records = recorder.freeze(predict_probs(model, task.inputs, runtime))
    return replace(records, embedding=matrix), wrong
