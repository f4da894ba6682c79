"""How a model is trained: the [training], [loss] and [strategy] sections of a recipe."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from labelclean.arrays import ENOUGH_ROWS
from labelclean.catalogue import nearest_name
from labelclean.errors import ConfigError
from labelclean.models.settings import MODES

_CHOICES = {
    "mode": ("auto", *MODES),
    "optimizer": ("adamw", "sgd"),
    "schedule": ("cosine", "step", "restarts", "onecycle", "constant"),
    "precision": ("auto", "float32", "bfloat16", "float16"),
    "early_stop": ("off", "noisy", "clean"),
}
_AT_LEAST = {
    "epochs": 1, "batch_size": 1, "learning_rate": 0, "momentum": 0, "weight_decay": 0,
    "gamma": 0, "floor": 0, "cycle": 1, "accumulate": 1, "patience": 1, "cache_gigabytes": 0,
    "frozen_stages": 0, "head_rate": 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LossSettings:
    """The loss to train with.

    Args:
        name: A name of the loss catalogue; `auto` chooses by planted flips in head mode.
        params: Its parameters; what is not named keeps its default.
    """

    name: str = "auto"
    params: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StrategySettings:
    """The way to train: which rows count, with which targets, and what networks exchange.

    Args:
        name: A name of the strategy catalogue; `plain` takes every row with its given label.
        params: Its parameters; what is not named keeps its default.
    """

    name: str = "plain"
    params: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """Everything about training that is not the model or the loss; None: what suits the mode.

    Args:
        mode: `head` trains a classifier on frozen features, `finetune` the whole pretrained
            network, `scratch` the whole network from random weights; `auto`: head without a GPU,
            else finetune.
        epochs: How often every sample is seen. Heads: 20 times, of more than 131,072 samples less
            often, the fewer the more there are, but at least 8 times.
        batch_size: Samples per step, over all processes.
        optimizer: `adamw` or `sgd` (with momentum).
        learning_rate: At the start.
        momentum: Of sgd.
        weight_decay: For weights, not for biases and norms; decoupled (times the rate) in adamw.
        schedule: `cosine`, `step` (times `gamma` at each milestone), `restarts` (cosine, anew
            every `cycle` epochs), `onecycle` (up for three tenths, then down to zero) or
            `constant`.
        milestones: For `step`, as shares of the epochs.
        gamma: For `step`.
        cycle: For `restarts`, in epochs.
        floor: Lowest rate of `cosine` and `restarts`, as a share of `learning_rate`.
        frozen_stages: Stages of the network that `finetune` leaves as they are, counted from the
            input. What they say about a picture is computed once, so every epoch is cheaper.
        head_rate: How much larger the classifier's learning rate is than that of the network
            below it.
        augment: Pad, crop at random and mirror, as the papers do; never in head mode.
        accumulate: Parts a batch is worked through in, to save memory.
        precision: Of matrix products on a GPU.
        class_weights: Weigh samples so that all classes count alike.
        stratify: Spread every class evenly over the batches of an epoch.
        early_stop: `noisy` keeps the epoch with the best accuracy on the given labels of the rows
            with split `val`, `clean` looks only at those of them that are verified.
        patience: Epochs without improvement before training stops early.
        folds: Networks that each leave some rows out, so that every row is also judged by one that
            never saw its label; 0: none. So many trainings more, each on the other folds' rows;
            heads are always cross-fitted and need none.
        cache_gigabytes: Size the feature cache is kept under.
    """

    mode: str = "auto"
    epochs: int | None = None
    batch_size: int | None = None
    optimizer: str | None = None
    learning_rate: float | None = None
    momentum: float = 0.9
    weight_decay: float | None = None
    schedule: str | None = None
    milestones: list[float] = field(default_factory=lambda: [0.5, 0.75])
    gamma: float = 0.1
    cycle: int = 10
    floor: float = 0.0
    frozen_stages: int = 0
    head_rate: float | None = None
    augment: bool | None = None
    accumulate: int = 1
    precision: str = "auto"
    class_weights: bool = False
    stratify: bool = False
    early_stop: str = "off"
    patience: int = 5
    folds: int = 0
    cache_gigabytes: float = 20.0

    def __post_init__(self) -> None:
        """Refuse values that cannot work, all in one message."""
        faults = []
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in allowed:
                hint = nearest_name(value, allowed)
                faults.append(f"training.{name} is {value!r};{hint} known: {', '.join(allowed)}")
        for name, least in _AT_LEAST.items():
            value = getattr(self, name)
            if value is not None and not value >= least:
                faults.append(f"training.{name} is {value}; it must be at least {least}")
        if self.folds < 0 or self.folds == 1:
            faults.append(
                f"training.folds is {self.folds}; it must be at least 2, or 0 for no networks that "
                "leave rows out"
            )
        if not all(isinstance(m, int | float) and 0 < m < 1 for m in self.milestones):
            faults.append(f"training.milestones is {self.milestones}; each must be between 0 and 1")
        if faults:
            raise ConfigError("; ".join(faults) + ".")

    def resolved(self, mode: str, samples: int, processes: int = 1) -> "TrainSettings":
        """Fill in what suits the mode and the number of samples; nothing is None afterwards.

        Args:
            mode: One of MODES.
            samples: Number of samples to train on.
            processes: Number of processes that share a batch.
        """
        known = dict(_DEFAULTS[mode])
        if mode == "head":
            known["batch_size"] = head_batch_size(samples)
            # Of very many samples each need not be seen as often: there are steps enough.
            known["epochs"] = min(20, max(8, round(20 * ENOUGH_ROWS / max(samples, 1))))
        chosen: dict[str, Any] = {
            name: value for name, value in known.items() if getattr(self, name) is None
        }
        settled = replace(self, mode=mode, **chosen)
        if mode == "head":
            settled = replace(settled, augment=False, folds=0)
        if mode != "head" and settled.batch_size is not None and settled.batch_size < 2 * processes:
            raise ConfigError(
                f"training.batch_size is {settled.batch_size}; batch norms need at least two "
                f"samples in each of {processes} process(es)."
            )
        return settled


def head_batch_size(samples: int, least: int = 32, whole: Callable[[float], int] = round) -> int:
    """Give the rows per step of a head: about 39 steps an epoch, measured with its defaults."""
    return min(2048, max(least, whole(samples / 39)))


_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "head": {
        "optimizer": "adamw", "learning_rate": 1e-3, "weight_decay": 5.0,
        "schedule": "cosine", "augment": False, "head_rate": 1.0,
    },
    "finetune": {
        "epochs": 6, "batch_size": 64, "optimizer": "adamw", "learning_rate": 3e-4,
        "weight_decay": 0.05, "schedule": "onecycle", "augment": True, "head_rate": 5.0,
    },
    "scratch": {
        "epochs": 100, "batch_size": 128, "optimizer": "sgd", "learning_rate": 0.1,
        "weight_decay": 1e-4, "schedule": "step", "augment": True, "head_rate": 1.0,
    },
}  # fmt: skip
