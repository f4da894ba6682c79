"""D2L: when the features' dimension begins to rise, blend labels with predictions."""

import math

import numpy as np
import torch
from torch import Tensor

from labelclean.losses.checks import whole
from labelclean.strategies.base import (
    ROW_TARGETS,
    EpochPlan,
    Setting,
    Step,
    Strategy,
    Sweep,
    Verdict,
    one_hot,
)
from labelclean.strategies.co_teaching import needs_depth

_BATCH, _BATCHES, _WINDOW = 128, 10, 5


class D2L(Strategy):
    """Watch the dimension of the features; when it turns up, go back an epoch and blend labels.

    The local intrinsic dimension (LID) of what the classifier sees falls while a network learns
    and rises when it memorises: LID = -1 / mean_i ln(r_i / r_k) of the k nearest of 128 rows, mean
    over 10 random batches. The turn is where it exceeds mean + 2 std of the five before. From
    there alpha = exp(-(e/E) LID_e / min LID), target alpha e_y + (1 - alpha) e_argmax(p).

    Args:
        neighbours: k, at least 2.
        init: Epochs before the turn is looked for; None: a third of the epochs.

    Paper: Ma et al., "Dimensionality-Driven Learning with Noisy Labels", 2018. The rollback of the
    authors' code loads the weights it has; ours goes back. The phase before the turn trains the
    loss that was chosen (the code: SCE since 2019). A dimension that cannot be computed repeats the
    last one.
    """

    paper = "Ma et al., Dimensionality-Driven Learning, 2018"
    formula = "t = a e_y + (1-a) e_argmax(p),  a = exp(-(e/E) LID_e / min LID)"
    advice = (
        ("CIFAR-10, 120 epochs", "init=40"),
        ("CIFAR-100, 200 epochs", "init=60"),
    )
    changes = frozenset({ROW_TARGETS})
    memory_shape = "epochs"
    cost = 1.01

    dimensions: Tensor
    turned: Tensor

    def __init__(self, neighbours: int = 20, init: int | None = None) -> None:
        super().__init__()
        self.neighbours = whole("neighbours", neighbours, 2)
        self.init = init if init is None else whole("init", init, 0)

    def unfit(self, setting: Setting) -> str | None:
        """Refuse features that never move, and too few rows for the neighbours."""
        most = min(setting.rows, _BATCH)
        if most <= self.neighbours:
            return (
                f"{most} rows, of {setting.rows} at most {_BATCH} at a time, are too few for "
                f"{self.neighbours} neighbours each; set strategy.neighbours lower"
            )
        return needs_depth(setting, "it watches how what the classifier sees changes")

    def bind(self, labels: Tensor, num_classes: int, epochs: int) -> None:
        """Make room for a dimension an epoch."""
        super().bind(labels, num_classes, epochs)
        self.register_buffer("dimensions", torch.full((epochs,), math.nan, dtype=torch.float64))
        self.register_buffer("turned", torch.tensor(-1))
        self.alpha = 1.0

    def start_epoch(self, epoch: int, sweep: Sweep, generator: np.random.Generator) -> EpochPlan:
        """Measure the dimension; find the turn once; settle how much labels count."""
        count = len(self.labels)
        rows = generator.permutation(count)[: _BATCH * _BATCHES]
        features = sweep(0, "features", torch.from_numpy(rows))
        cuts = [part for part in torch.split(features, _BATCH) if len(part) > self.neighbours]
        found = float(torch.stack([dimension(part, self.neighbours) for part in cuts]).mean())
        if not (math.isfinite(found) and found > 0):
            found = float(self.dimensions[epoch - 1]) if epoch else 1.0
        self.dimensions[epoch] = found
        known = self.dimensions[: epoch + 1].numpy()
        turns_now = int(self.turned) < 0 and is_turn(known, self._init)
        if turns_now:
            self.turned.fill_(epoch)
        self.alpha = 1.0
        if int(self.turned) >= 0:
            self.alpha = label_share(epoch / self.epochs, known)
        turns = super().start_epoch(epoch, sweep, generator).turns
        return EpochPlan(turns, remember=int(self.turned) < 0, restore=turns_now)

    @property
    def _init(self) -> int:
        return self.epochs // 3 if self.init is None else self.init

    def judge(self, logits: Tensor, step: Step) -> Verdict:
        """Blend the labels with what the network says."""
        if self.alpha == 1.0:
            return Verdict()
        classes = logits.shape[2]
        said = one_hot(logits[0].detach().argmax(dim=1), classes, logits)
        given = one_hot(step.labels, classes, logits)
        return Verdict((self.alpha * given + (1 - self.alpha) * said)[None])


def dimension(features: Tensor, neighbours: int) -> Tensor:
    """Give the mean local intrinsic dimension of (B, D) rows among each other."""
    distances = torch.cdist(features.double(), features.double())
    distances.fill_diagonal_(math.inf)
    # Equal rows have no direction: they are passed over.
    distances[distances == 0] = math.inf
    nearest = distances.sort(dim=1).values[:, :neighbours]
    return local_dimension(nearest[torch.isfinite(nearest).all(dim=1)]).mean()


def local_dimension(nearest: Tensor) -> Tensor:
    """Give (B,) dimensions of (B, k) ascending distances."""
    return -1 / (nearest / nearest[:, -1:]).log().mean(dim=1)


def is_turn(known: np.ndarray, init: int) -> bool:
    """Say whether the last of (e + 1,) dimensions lies above the five before it."""
    if len(known) <= init + _WINDOW:
        return False
    before = known[-1 - _WINDOW : -1]
    return bool(known[-1] > before.mean() + 2 * before.std())


def label_share(progress: float, known: np.ndarray) -> float:
    """Give alpha, how much of the given label stays, by (e + 1,) dimensions."""
    return math.exp(-progress * float(known[-1]) / float(known.min()))
