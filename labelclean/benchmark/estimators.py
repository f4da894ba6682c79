"""Measure the estimators: scikit-learn's checks, accuracy under noise, errors found, seconds."""

import contextlib
import io
import logging
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from labelclean.benchmark.metrics import average_precision
from labelclean.benchmark.noise import inject
from labelclean.errors import ConfigError
from labelclean.estimators.cleaner import LabelCleaner
from labelclean.estimators.robust import RobustClassifier

_Rows = tuple[NDArray[np.float64], NDArray[np.int64]]
_Watch = Callable[[str], None]


def _generated(seed: int, **shape: Any) -> _Rows:
    X, y = make_classification(random_state=seed, **shape)
    return X, y


ACCURACY: dict[str, Callable[[int], _Rows]] = {
    "digits": lambda _: load_digits(return_X_y=True),
    "generated, 5 classes": lambda seed: _generated(
        seed, n_samples=3000, n_informative=10, n_classes=5, class_sep=1.5
    ),
    "generated, 3 classes": lambda seed: _generated(
        seed, n_samples=3000, n_features=40, n_informative=12, n_redundant=8, n_classes=3,
        n_clusters_per_class=1,
    ),
}  # fmt: skip
FINDING: dict[str, Callable[[int], _Rows]] = {
    "digits": lambda _: load_digits(return_X_y=True),
    "wine": lambda _: load_wine(return_X_y=True),
    "breast cancer": lambda _: load_breast_cancer(return_X_y=True),
    "generated, hard": lambda seed: _generated(
        seed, n_samples=2000, n_features=30, n_informative=8, n_classes=6
    ),
}
SMALL = 600  # rows up to which a set is measured with more seeds
FIRST_SEED = 100  # the defaults were chosen with smaller ones


def plain_pipeline() -> Any:
    """Give the rival: standardised logistic regression."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def clean_learning(estimator: Any, seed: int = 0) -> Any:
    """Give cleanlab's CleanLearning, where it is installed."""
    try:
        from cleanlab.classification import CleanLearning  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            "this comparison needs cleanlab: pip install 'labelclean[benchmark]'."
        ) from error
    return CleanLearning(estimator, seed=seed)


def contract(against: bool = True) -> Iterator[dict[str, Any]]:
    """Run scikit-learn's estimator checks and count how they end."""
    subjects: list[BaseEstimator] = [RobustClassifier(), LabelCleaner()]
    with _silence():
        if against:
            subjects.append(clean_learning(LogisticRegression()))
        for subject in subjects:
            began = time.perf_counter()
            ends = [end["status"] for end in check_estimator(subject, on_skip=None, on_fail=None)]
            yield {
                "estimator": type(subject).__name__,
                "passed": ends.count("passed"),
                "failed": ends.count("failed"),
                "skipped": ends.count("skipped"),
                "seconds": time.perf_counter() - began,
            }


def estimator_accuracy(seeds: int, watch: _Watch) -> Iterator[dict[str, Any]]:
    """Compare accuracy on clean test rows after training on noisy ones."""
    for name, make in ACCURACY.items():
        for rate in (0.0, 0.4):
            scores: dict[str, list[float]] = {"ours": [], "rival": []}
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                X, y = make(seed)
                a, b, ya, yb = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
                given = _noisy(ya, rate, seed)
                ours = RobustClassifier(random_state=seed).fit(a, given)
                scores["ours"].append(ours.score(b, yb))
                scores["rival"].append(plain_pipeline().fit(a, given).score(b, yb))
                watch(name)
            means = {key: float(np.mean(values)) for key, values in scores.items()}
            yield {"set": name, "noise": rate, "seeds": seeds, **means}


def finding(seeds: int, small_seeds: int, watch: _Watch) -> Iterator[dict[str, Any]]:
    """Compare the average precision of planted errors found."""
    for name, make in FINDING.items():
        for rate in (0.2, 0.4):
            scores: dict[str, list[float]] = {"ours": [], "rival": []}
            count = small_seeds if len(make(0)[1]) <= SMALL else seeds
            for seed in range(FIRST_SEED, FIRST_SEED + count):
                X, y = make(seed)
                given = _noisy(y, rate, seed)
                cleaner = LabelCleaner(random_state=seed)
                cleaner.fit_resample(X, given)
                scores["ours"].append(average_precision(given != y, cleaner.suspicion_))
                with _silence():
                    found = clean_learning(plain_pipeline(), seed).find_label_issues(X, given)
                quality = np.asarray(found["label_quality"])
                scores["rival"].append(average_precision(given != y, 1 - quality))
                watch(name)
            means = {key: float(np.mean(values)) for key, values in scores.items()}
            yield {"set": name, "noise": rate, "seeds": count, **means}


def speed(rounds: int = 3) -> dict[str, float]:
    """Time fits of (10,000, 50) at default settings; the smallest of some rounds."""
    X, y = _generated(0, n_samples=10_000, n_features=50, n_informative=10, n_classes=5)
    subjects = {
        "RobustClassifier": lambda: RobustClassifier(random_state=0),
        "LabelCleaner": lambda: LabelCleaner(random_state=0),
        "LogisticRegression": plain_pipeline,
    }
    seconds = {}
    for name, make in subjects.items():
        times = []
        for _ in range(rounds):
            began = time.perf_counter()
            make().fit(X, y)
            times.append(time.perf_counter() - began)
        seconds[name] = min(times)
    return seconds


def _noisy(y: NDArray[np.int64], rate: float, seed: int) -> NDArray[np.int64]:
    if not rate:
        return y
    planted = inject("symmetric", y, int(y.max()) + 1, rate, np.random.default_rng(seed))
    return np.asarray(planted.label)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the rival's prints and warnings off the screen."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
