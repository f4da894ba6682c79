"""A zoo of small data sets with known truth: clean and noisy labels, models trained on them.

Every case is out-of-fold probabilities of a model that was trained on the noisy labels, as a user
would bring them. All data ship with scikit-learn or are drawn from a seed; nothing is downloaded.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelclean.arrays import Floats, Ints

MOST_DOUBT = 0.6  # a row that nearly everybody would call something else has another truth
ZOO_NOISES = ("sym-5", "sym-20", "sym-40", "asym-30", "cc-20", "inst-10", "inst-25")
_HONEST, OVERCONFIDENT, EASY = ("lr", "rf", "knn"), ("nb", "knn3"), ("lr", "rf", "knn", "mlp")


@dataclass(frozen=True, slots=True)
class ZooSet:
    """One member of the zoo.

    Args:
        data: Name of the data set.
        noise: Kind and rate, "none" for clean labels.
        model: Name of the model that was trained on the labels.
        label: (N,) int64, the labels the model saw.
        true: (N,) int64.
        probs: (N, C) float64, out of fold.
    """

    data: str
    noise: str
    model: str
    label: Ints
    true: Ints
    probs: Floats


def data_sets() -> dict[str, tuple[Floats, Ints]]:
    """Give the main data sets: easy and hard, 2 to 20 classes, balanced and not."""
    bundled = {
        "digits": datasets.load_digits(return_X_y=True),
        "cancer": datasets.load_breast_cancer(return_X_y=True),
        "wine": datasets.load_wine(return_X_y=True),
    }
    drawn = {
        "two_hard": _drawn(2, 0.6, seed=1, n_informative=6),
        "three_rare": _drawn(3, 1.8, seed=2, n_informative=8, weights=[0.7, 0.2, 0.1]),
        "five": _drawn(5, 1.2, seed=3, n_informative=8),
        "twenty": _drawn(20, 2.0, seed=4, n_informative=12, n_samples=3000),
    }
    return {name: (x, y.astype(np.int64)) for name, (x, y) in (bundled | drawn).items()}


def easy_sets() -> dict[str, tuple[Floats, Ints]]:
    """Give further data sets on which a plain model is nearly always right."""
    plain = {"iris": datasets.load_iris(return_X_y=True)}
    for seed, size in enumerate((2, 4, 8, 12)):
        plain[f"easy_{size}"] = _drawn(size, 3.0, seed=10 + seed, n_informative=12)
    return {name: (x, y.astype(np.int64)) for name, (x, y) in plain.items()}


def _drawn(classes: int, separation: float, *, seed: int, **options: Any) -> tuple[Floats, Ints]:
    settings = {"n_samples": 2000, "n_features": 20, "n_redundant": 2, "flip_y": 0.0} | options
    x, y = datasets.make_classification(
        n_classes=classes, class_sep=separation, n_clusters_per_class=1, random_state=seed,
        **settings,
    )  # fmt: skip
    return x, y


def _models() -> dict[str, Any]:
    scaled: Callable[[Any], Any] = lambda model: make_pipeline(StandardScaler(), model)  # noqa: E731
    return {
        "lr": scaled(LogisticRegression(max_iter=300)),
        "rf": RandomForestClassifier(60, min_samples_leaf=3, random_state=0),
        "knn": scaled(KNeighborsClassifier(15)),
        "mlp": scaled(MLPClassifier((64,), max_iter=60, early_stopping=True, random_state=0)),
        "nb": scaled(GaussianNB()),
        "knn3": scaled(KNeighborsClassifier(3)),
    }


def out_of_fold(model: Any, x: Floats, label: Ints, size: int, folds: int = 5) -> Floats:
    """Give (N, C) probabilities of models that did not train on the row."""
    probs = np.zeros((len(label), size))
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(x, label):
        fitted = clone(model).fit(x[train], label[train])
        probs[np.ix_(test, fitted.classes_)] = fitted.predict_proba(x[test])
    return probs


def add_noise(
    kind: str,
    x: Floats,
    true: Ints,
    size: int,
    rng: np.random.Generator,
    doubt: NDArray[np.floating[Any]] | None = None,
) -> Ints:
    """Flip labels: uniform, to the next class, by a random matrix, or as the picture suggests.

    Args:
        kind: Name and percentage, for example "sym-20"; "none" flips nothing.
        x: (N, D) features.
        true: (N,) true labels.
        size: C.
        rng: Where the draws come from.
        doubt: (N, C) what a row could be mistaken for, for "inst"; default: asked of a model.
    """
    if kind == "none":
        return true.copy()
    name, percent = kind.split("-")
    rate = int(percent) / 100
    if name == "inst":
        if doubt is None:
            doubt = out_of_fold(ExtraTreesClassifier(60, random_state=0), x, true, size)
        return _instance_flips(doubt, true, rate, rng)
    matrix = np.full((size, size), rate / (size - 1))
    at = np.arange(0, size, 1 if name == "pair" else 2)
    if name in ("asym", "pair"):
        matrix = np.zeros((size, size))
        matrix[at, (at + 1) % size] = rate
    elif name == "cc":
        matrix = rng.dirichlet(np.full(size, 0.5), size)
        np.fill_diagonal(matrix, 0)
        matrix *= rate * rng.uniform(0.5, 1.5, (size, 1)) / matrix.sum(axis=1, keepdims=True)
    np.fill_diagonal(matrix, 0)
    np.fill_diagonal(matrix, 1 - matrix.sum(axis=1))
    draw = rng.random((len(true), 1))
    label: Ints = (draw > matrix.cumsum(axis=1)[true]).sum(axis=1).clip(0, size - 1)
    return label


def _instance_flips(
    doubt: NDArray[np.floating[Any]], true: Ints, rate: float, rng: np.random.Generator
) -> Ints:
    """Flip ambiguous rows to what they look like, as people do.

    The chance of a flip grows with the doubt about the row and is scaled to the wanted rate; no
    row is flipped with more than MOST_DOUBT.
    """
    other = np.array(doubt, dtype=np.float64) + 1e-3
    other[np.arange(len(true)), true] = 0
    chance = other.sum(axis=1)
    for _ in range(50):
        chance = np.minimum(chance * rate / chance.mean(), MOST_DOUBT)
    flips = np.flatnonzero(rng.random(len(true)) < chance)
    steps = other[flips].cumsum(axis=1)
    label = true.copy()
    label[flips] = (rng.random((len(flips), 1)) * steps[:, -1:] >= steps).sum(axis=1)
    return label


def _case(
    data: tuple[str, Floats, Ints], noise: str, model: str, models: dict[str, Any], seed: int
) -> ZooSet:
    name, x, true = data
    size = int(true.max()) + 1
    label = add_noise(noise, x, true, size, np.random.default_rng([seed, len(name), size]))
    return ZooSet(name, noise, model, label, true, out_of_fold(models[model], x, label, size))


def zoo_case(data: str, noise: str, model: str, seed: int = 0) -> ZooSet:
    """Give one member by the names of its data set, noise and model."""
    x, true = data_sets()[data]
    return _case((data, x, true), noise, model, _models(), seed)


def noisy_cases(seed: int = 0) -> Iterator[ZooSet]:
    """Give 7 data sets x 3 models x 7 kinds of noise, and over-confident models on two kinds."""
    models, sets = _models(), data_sets()
    for name, (x, true) in sets.items():
        for noise in ZOO_NOISES:
            for model in _HONEST:
                yield _case((name, x, true), noise, model, models, seed)
        for noise in ("sym-20", "inst-10"):
            for model in OVERCONFIDENT:
                yield _case((name, x, true), noise, model, models, seed)


def clean_cases() -> Iterator[ZooSet]:
    """Give every data set with its true labels, honest and over-confident models."""
    models = _models()
    for name, (x, true) in data_sets().items():
        for model in _HONEST + OVERCONFIDENT:
            yield _case((name, x, true), "none", model, models, seed=0)
    for name, (x, true) in easy_sets().items():
        for model in EASY:
            yield _case((name, x, true), "none", model, models, seed=0)
