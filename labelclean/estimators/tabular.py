"""A head on feature vectors, as an estimator needs it: standardise, train, answer."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from labelclean.arrays import Floats
from labelclean.estimators.inputs import Labelled
from labelclean.evidence.folds import assign_folds
from labelclean.losses import RobustLoss
from labelclean.models.head import HIDDEN_BEHIND_ATTENTION, Head
from labelclean.options import in_rows, progress_bar
from labelclean.strategies import PLAIN_STRATEGY, Plain, Setting, Strategy, require_setting
from labelclean.training.inference import predict_probs
from labelclean.training.loop import train
from labelclean.training.runtime import Runtime, one_thread_each
from labelclean.training.settings import TrainSettings, head_batch_size
from labelclean.training.task import Features, Subset, Task

# Trained on noisy labels of digits, wine and generated sets, chosen on validation rows.
STEPS, EPOCHS, _RATE, DECAY = 100, 10, 0.1, 0.5


@dataclass(frozen=True, slots=True)
class FeatureModel:
    """A trained head and the scale its features must have.

    Args:
        mean: (D,) mean of the training features.
        scale: (D,) what a centred feature is multiplied by; 0 for one that never changed.
        head: The classifier, in float64.
    """

    mean: Floats
    scale: Floats
    head: Head

    def logits(self, features: Floats) -> Floats:
        """Give (N, C) logits of (N, D) features."""
        with torch.inference_mode(), one_thread_each():
            answer: Floats = self.head(self._scaled(features)).logits.numpy()
        return answer

    def embed(self, features: Floats) -> Floats:
        """Give what the last layer sees: scaled features, or the hidden layer's answer."""
        with torch.inference_mode(), one_thread_each():
            answer: Floats = self.head.body(self._scaled(features)).numpy()
        return answer

    @property
    def width(self) -> int:
        """Number of columns of an embedding."""
        return self.head.classifier.in_features

    def tensors(self) -> dict[str, torch.Tensor]:
        """Give all numbers it consists of, by name."""
        own = {"mean": torch.from_numpy(self.mean), "scale": torch.from_numpy(self.scale)}
        return own | {f"head.{name}": value for name, value in self.head.state_dict().items()}

    def facts(self) -> dict[str, object]:
        """Give what is needed beside the numbers to build it again."""
        return {"kind": "features", "head": head_facts(self.head)}

    @classmethod
    def restore(
        cls, facts: Mapping[str, object], tensors: Mapping[str, torch.Tensor]
    ) -> "FeatureModel":
        """Build it again from `facts` and `tensors`."""
        head = restore_head(facts["head"], tensors, torch.float64)
        return cls(tensors["mean"].numpy(), tensors["scale"].numpy(), head)

    def _scaled(self, features: Floats) -> torch.Tensor:
        return torch.from_numpy((features - self.mean) * self.scale)


def head_facts(head: Head) -> dict[str, object]:
    """Give the shape of a head."""
    return {
        "width": head.body[0].in_features if len(head.body) else head.classifier.in_features,
        "classes": head.classifier.out_features,
        "hidden": head.classifier.in_features if len(head.body) else 0,
        "attention": head.attention is not None,
    }


def restore_head(facts: object, tensors: Mapping[str, torch.Tensor], kind: torch.dtype) -> Head:
    """Build a head of a shape and load its numbers."""
    shape = dict(facts)  # type: ignore[call-overload]
    with torch.random.fork_rng():
        head = Head(
            shape["width"], shape["classes"], hidden=shape["hidden"], attention=shape["attention"]
        ).to(kind)
    own = {n.removeprefix("head."): t for n, t in tensors.items() if n.startswith("head.")}
    head.load_state_dict(own)
    return head.eval()


def standardisation(features: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Give (D,) weighted mean and inverse spread; the inverse is 0 where nothing varies."""
    mean = np.average(features, axis=0, weights=weight)
    spread = np.sqrt(np.average((features - mean) ** 2, axis=0, weights=weight))
    steady = spread <= 1e-10 * np.maximum(1, np.abs(mean))
    return mean, np.where(steady, 0.0, 1 / np.where(steady, 1.0, spread))


def suited(asked: TrainSettings, rows: int) -> TrainSettings:
    """Fill in what suits feature vectors: 100 steps, or 10 passes where those are more.

    Few rows make one batch, so that a row of weight two is exactly a row that occurs twice.
    """
    batch = asked.batch_size or head_batch_size(rows, 256)
    epochs = asked.epochs or max(EPOCHS, round(STEPS / math.ceil(rows / batch)))
    rate = _RATE if asked.learning_rate is None else asked.learning_rate
    decay = DECAY if asked.weight_decay is None else asked.weight_decay
    chosen = replace(asked, batch_size=batch, epochs=epochs, learning_rate=rate, weight_decay=decay)
    return chosen.resolved("head", rows)


def fit_features(  # noqa: PLR0913 (what is trained is apart from how)
    features: Floats,
    known: Labelled,
    loss: RobustLoss,
    settings: TrainSettings,
    strategy: tuple[str, Strategy] | None = None,
    *,
    hidden: int,
    validation: float,
    seed: int,
    verbose: int = 0,
) -> FeatureModel:
    """Train a head on feature vectors.

    Args:
        features: (N, D) as they came.
        known: Labels and weights.
        loss: A new loss.
        settings: What the user asked for; the rest is filled in by `suited`.
        strategy: Name and a new strategy; None: plain.
        hidden: Units of a hidden layer; 0: none, or 256 behind a loss with attention.
        validation: Share of the rows held out to tell when to stop; 0: train to the end.
        seed: Seed of every draw.
        verbose: Above 0: show a bar.
    """
    mean, scale = standardisation(features, known.weight)
    inputs = Features((features - mean) * scale)
    runtime = Runtime(torch.device("cpu"), seed=seed)
    rows, others = hold_out(known.label, validation, seed)
    how = suited(settings, len(rows))
    attention = loss.needs_attention
    if attention:
        hidden = hidden or HIDDEN_BEHIND_ATTENTION
    label, width = known.label[rows], features.shape[1]
    name, chosen = strategy or (PLAIN_STRATEGY, Plain())
    setting = Setting(
        len(rows), known.num_classes, how.batch_size or len(rows), how.epochs or 1, not hidden
    )
    require_setting(name, chosen, setting)
    with (
        runtime.seeded(),
        one_thread_each(),
        progress_bar("train", shown=verbose > 0) as on_progress,
    ):
        head, *peers = (
            Head(width, known.num_classes, hidden=hidden, attention=attention).double()
            for _ in range(chosen.networks)
        )
        loss.bind(len(rows), known.num_classes, how.epochs)
        chosen.bind(torch.from_numpy(label), known.num_classes, how.epochs or 1)
        task = Task(
            head,
            Subset(inputs, rows),
            label,
            known.weight[rows].astype(np.float32),
            rows.astype(str).astype(object),
            loss,
            how,
            _accuracy(head, Subset(inputs, others), known.label[others], runtime),
            chosen,
            tuple(peers),
        )
        train(task, runtime, None, on_progress=in_rows(on_progress, len(rows)))
    return FeatureModel(mean, scale, head.eval().requires_grad_(False))


def _accuracy(
    head: Head, inputs: Subset, label: NDArray[np.int64], runtime: Runtime
) -> Callable[[], float] | None:
    if not len(label):
        return None
    return lambda: float((predict_probs(head, inputs, runtime).argmax(axis=1) == label).mean())


def hold_out(
    label: NDArray[np.int64], share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Choose rows to train on and, about `share` of every class, rows that tell when to stop."""
    rows = np.arange(len(label))
    if share <= 0:
        return rows, rows[:0]
    fold = assign_folds(label, max(2, round(1 / share)), np.random.default_rng([abs(seed), 3]))
    return (rows[fold > 0], rows[fold == 0]) if fold.any() else (rows, rows[:0])
