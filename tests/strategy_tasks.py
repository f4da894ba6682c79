"""Small tasks for the strategies' tests: three classes of points, a head with a hidden layer."""

import numpy as np
import torch

from labelclean.losses import build
from labelclean.models.head import Head
from labelclean.strategies import STRATEGIES, Strategy, build_strategy
from labelclean.training.runtime import Runtime
from labelclean.training.settings import TrainSettings
from labelclean.training.task import Features, Task

ROWS, WIDTH, CLASSES = 60, 4, 3
RUNTIME = Runtime(torch.device("cpu"))
SMALL: dict[str, dict[str, object]] = {
    "bilevel": {"chunks": 3},
    "co_teaching": {"ramp": 2},
    "joint": {"begin": 1, "ring": 2, "anew": 0.75},
    "d2l": {"neighbours": 5, "init": 0},
    "dividemix": {"warmup": 1},
}
"""Parameters that let a strategy show all it does in four epochs."""


def small(name: str, **params: object) -> Strategy:
    """Build a strategy for the tests' few rows and epochs."""
    return build_strategy(name, **{**SMALL.get(name, {}), **params})


def make_task(
    strategy: Strategy | str,
    loss: str = "cce",
    *,
    hidden: int = 8,
    params: dict[str, object] | None = None,
    **settings: object,
) -> Task:
    """Give a task: 60 rows, of which the first eight carry a wrong label."""
    rng = np.random.default_rng(0)
    truth = np.arange(ROWS) % CLASSES
    matrix = (np.eye(CLASSES, WIDTH)[truth] * 3 + rng.normal(size=(ROWS, WIDTH))).astype("f4")
    label = truth.copy()
    label[:8] = (label[:8] + 1) % CLASSES
    given = {"epochs": 4, "batch_size": 15, "weight_decay": 0.0, "learning_rate": 0.01}
    training = TrainSettings(**{**given, **settings}).resolved("head", ROWS)
    chosen = small(strategy) if isinstance(strategy, str) else strategy
    built = build(loss, **(params or {}))
    with RUNTIME.seeded():
        networks = [
            Head(WIDTH, CLASSES, hidden=hidden, attention=built.needs_attention)
            for _ in range(chosen.networks)
        ]
    built.bind(ROWS, CLASSES, training.epochs)
    chosen.bind(torch.from_numpy(label), CLASSES, training.epochs or 1)
    return Task(
        networks[0], Features(matrix), label, np.ones(ROWS, np.float32),
        np.array([f"id{i}" for i in range(ROWS)], object), built, training,
        strategy=chosen, peers=tuple(networks[1:]),
    )  # fmt: skip


NAMES = [name for name in STRATEGIES if name != "plain"]
