"""On digits with two fifths of the labels wrong every strategy beats plain cross entropy."""

from functools import cache

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from labelclean.losses import build
from labelclean.models.head import Head
from labelclean.strategies import build_strategy
from labelclean.training.inference import predict_probs
from labelclean.training.loop import train
from labelclean.training.runtime import Runtime, one_thread_each
from labelclean.training.settings import TrainSettings
from labelclean.training.task import Features, Task

RATE, TRAINED, CLASSES, SEEDS = 0.4, 1200, 10, (0, 1, 2)
GAIN = 0.05


def noisy_digits(seed: int):
    """Pixels and noisy labels to train on; pixels and true labels beside."""
    rng = np.random.default_rng(seed)
    table = load_digits()
    order = rng.permutation(len(table.target))
    pixels = (table.data[order] / 16).astype(np.float32)
    truth = table.target[order].astype(np.int64)
    given = truth.copy()
    wrong = rng.random(len(given)) < RATE
    given[wrong] = (truth[wrong] + rng.integers(1, CLASSES, int(wrong.sum()))) % CLASSES
    return pixels[:TRAINED], given[:TRAINED], pixels[TRAINED:], truth[TRAINED:]


def accuracy(strategy: str, seed: int, hidden: int, **params: object) -> float:
    """Give the accuracy on clean labels of a network that learnt noisy ones by a strategy."""
    pixels, given, others, truth = noisy_digits(seed)
    settings = TrainSettings(
        epochs=60, batch_size=64, optimizer="sgd", learning_rate=0.1, momentum=0.9,
        weight_decay=1e-4, schedule="step", milestones=[0.7, 0.9],
    ).resolved("head", TRAINED)  # fmt: skip
    runtime = Runtime(torch.device("cpu"), seed=seed)
    chosen, loss = build_strategy(strategy, **params), build("cce")
    with runtime.seeded(), one_thread_each():
        networks = [
            Head(64, CLASSES, hidden=hidden, attention=False) for _ in range(chosen.networks)
        ]
        loss.bind(TRAINED, CLASSES, settings.epochs)
        chosen.bind(torch.from_numpy(given), CLASSES, settings.epochs or 1)
        task = Task(
            networks[0], Features(pixels), given, np.ones(TRAINED, np.float32),
            np.arange(TRAINED).astype(str).astype(object), loss, settings,
            strategy=chosen, peers=tuple(networks[1:]),
        )  # fmt: skip
        train(task, runtime, None)
        said = predict_probs(task.model, Features(others), runtime)
    return float((said.argmax(axis=1) == truth).mean())


@cache
def plain(hidden: int) -> float:
    return float(np.mean([accuracy("plain", seed, hidden) for seed in SEEDS]))


CASES = {
    "self_paced": {"share": 0.6, "decay": 0.99},
    "mentornet_pd": {"share": 0.5},
    "mixup": {"alpha": 16.0},
    "bilevel": {},
    "co_teaching": {"forget": 0.4},
    "joint": {"begin": 12},
    "d2l": {"init": 3},
    "dividemix": {"lambda_u": 25.0},
    "elr_plus": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_a_strategy_beats_plain_cross_entropy(name):
    hidden = 256
    found = float(np.mean([accuracy(name, seed, hidden, **CASES[name]) for seed in SEEDS]))
    assert found >= plain(hidden) + GAIN
