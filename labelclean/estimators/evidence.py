"""Where a LabelCleaner's evidence comes from: features, pictures, or somebody else's classifier."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from labelclean.arrays import Floats, Ints
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.fused import fuse_sources, judge_fused
from labelclean.calibration.judgement import Judgement, judge
from labelclean.calibration.outlying import with_outliers
from labelclean.errors import ConfigError
from labelclean.estimators.inputs import Labelled, rows_of
from labelclean.estimators.tabular import standardisation
from labelclean.evidence.features import PreparedFeatures
from labelclean.evidence.folds import assign_folds
from labelclean.evidence.noise_aware import NoiseAwareSettings
from labelclean.training.runtime import one_thread_each

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found out about N rows.

    Args:
        judgement: What the judge says.
        p_given: (N,) probability of the given label.
        agreement: (N,) the neighbours' vote for the given label; None: not asked.
        transition: (C, C) P(given | true); NaN where no estimate is possible.
        signals: Column to (N,) values of what else the trained network said.
    """

    judgement: Judgement
    p_given: NDArray[np.float32]
    agreement: Floats | None
    transition: Floats
    signals: Mapping[str, Floats] = field(default_factory=dict)


def from_features(
    features: NDArray[Any],
    known: Labelled,
    *,
    seed: int,
    scaled: bool = False,
) -> Seen:
    """Judge rows by their features.

    Args:
        features: (N, D).
        known: What is known about the rows.
        seed: Seed of every draw.
        scaled: Whether these are a backbone's features, scaled already.
    """
    constants, heads = judge_constants(), None
    if not scaled:
        features = with_random_features(features, known.weight, seed)
        # A table's few columns need larger weights than a backbone's thousands.
        heads = NoiseAwareSettings(lr=constants.table_lr, weight_decay=constants.table_weight_decay)
    label, rows = known.label, np.arange(len(known.label))
    with one_thread_each():
        prepared = PreparedFeatures(
            features.astype(np.float32), known.num_classes,
            weight=known.weight.astype(np.float32), seed=seed,
            group=known.group, verified=known.verified, heads=heads,
        )  # fmt: skip
        given = prepared.posteriors(label)
    fused, fusion = fuse_sources(
        given.sources, label, given.fold, distance=given.distance, verified=known.verified
    )
    judgement = judge_fused(label, fused, fusion, known.verified)
    return Seen(
        judgement,
        fused[rows, label],
        given.sources["neighbours"][rows, label],
        _transition(judgement, known.num_classes),
    )


def with_random_features(features: NDArray[Any], weight: Floats, seed: int) -> Floats:
    """Standardise (N, D) features and add random ones, so that linear heads can bend.

    The random ones are max(0, x w + b) with fixed random w and b, standardised too, and scaled so
    that together they weigh as much in a distance as the features themselves.
    """
    mean, scale = standardisation(features, weight)
    scaled = (features - mean) * scale
    rng = np.random.default_rng([abs(seed), 9])
    width, added = scaled.shape[1], judge_constants().random_features
    slope = rng.standard_normal((width, added)) / np.sqrt(width)
    bent = np.maximum(scaled @ slope + rng.uniform(-1, 1, added), 0)
    mean, scale = standardisation(bent, weight)
    return np.hstack([scaled, (bent - mean) * scale * np.sqrt(width / added)])


def from_pictures(cleaner: Any, pictures: NDArray[Any], known: Labelled, seed: int) -> Seen:
    """Judge pictures by the evidence that an audit would gather about them.

    Args:
        cleaner: The LabelCleaner whose parameters say how to train and where.
        pictures: (N, H, W[, C]) pixels or (N,) paths.
        known: What is known about the rows.
        seed: Seed of every draw.
    """
    # Here, so that estimators on features never load image code.
    from labelclean.estimators.audited import observe_pictures, recipe_of  # noqa: PLC0415

    recipe = recipe_of(
        cleaner.loss, cleaner.loss_params, cleaner.mode, cleaner.backbone, cleaner.epochs
    )
    found = observe_pictures(
        pictures, known, recipe,
        device=cleaner.device, threads=joblib.effective_n_jobs(cleaner.n_jobs), seed=seed,
        verbose=cleaner.verbose,
    )  # fmt: skip
    signals = dict(found.signals)
    given = signals.pop("p_given").astype(np.float32)
    if found.fusion is None:
        judgement = judge(known.label, found.probs, verified=known.verified)
    else:
        judgement = judge_fused(known.label, found.probs, found.fusion, known.verified)
        odd = signals.get("p_outlier")
        judgement = with_outliers(judgement, known.label, odd, known.verified)
    agreement = signals.pop("neighbour_agreement", None)
    transition = _transition(judgement, known.num_classes)
    return Seen(judgement, given, agreement, transition, signals)


def from_estimator(
    estimator: Any,
    X: Any,
    known: Labelled,
    classes: NDArray[Any],
    *,
    weighted: bool,
    cv: int,
    n_jobs: int | None,
    seed: int,
) -> Seen:
    """Judge rows by what a classifier says about them without having trained on them.

    Args:
        estimator: A classifier with `predict_proba`; it is cloned.
        X: N rows, as the estimator takes them.
        known: What is known about the rows; rows of one group stay in one fold.
        classes: (C,) the labels' names.
        weighted: Whether to pass the weights on.
        cv: Number of folds.
        n_jobs: Folds trained at once.
        seed: Seed of the folds.

    Raises:
        ConfigError: The estimator has no probabilities or takes no weights, or cv is too small.
    """
    _require(estimator, weighted, cv)
    label, weight = known.label, known.weight if weighted else None
    fold = assign_folds(label, cv, np.random.default_rng([abs(seed), 1]), known.group)
    parts = [np.flatnonzero(fold == number) for number in np.unique(fold)]
    if len(parts) < 2:
        raise ConfigError("groups leaves all rows in one fold; at least two groups are needed.")

    def held_out(rows: Ints) -> Floats:
        return _predict_without(estimator, X, classes, label, weight, rows)

    # Threads, not processes: the arithmetic libraries then run as they would with one job, and
    # the result cannot depend on n_jobs.
    answers = joblib.Parallel(n_jobs=n_jobs, prefer="threads")(
        joblib.delayed(held_out)(rows) for rows in parts
    )
    probs = np.empty((len(label), len(classes)))
    for rows, answer in zip(parts, answers, strict=True):
        probs[rows] = answer
    judgement = judge(label, probs, verified=known.verified)
    given = probs[np.arange(len(label)), label].astype(np.float32)
    return Seen(judgement, given, None, _transition(judgement, len(classes)))


def _predict_without(
    estimator: Any,
    X: Any,
    classes: NDArray[Any],
    label: Ints,
    weight: Floats | None,
    rows: Ints,
) -> Floats:
    rest = np.setdiff1d(np.arange(len(label)), rows)
    probs = np.zeros((len(rows), len(classes)))
    present = np.unique(label[rest])
    if len(present) == 1:
        probs[:, present] = 1.0
        return probs
    extra = {} if weight is None else {"sample_weight": weight[rest]}
    fitted = clone(estimator).fit(rows_of(X, rest), classes[label[rest]], **extra)
    answer = np.asarray(fitted.predict_proba(rows_of(X, rows)), dtype=np.float64)
    # A class that the other folds lack has no column; nothing is known about it there.
    probs[:, np.searchsorted(classes, fitted.classes_)] = answer
    return probs


def _require(estimator: Any, weighted: bool, cv: int) -> None:
    faults = []
    if not hasattr(estimator, "predict_proba"):
        faults.append(f"estimator {type(estimator).__name__} has no predict_proba")
    if weighted and not has_fit_parameter(estimator, "sample_weight"):
        faults.append(f"estimator {type(estimator).__name__} takes no sample_weight")
    if cv < 2:
        faults.append(f"cv is {cv}; it must be at least 2")
    if faults:
        raise ConfigError("; ".join(faults) + ".")


def _transition(judgement: Judgement, num_classes: int) -> Floats:
    if judgement.fitted is None:
        return np.full((num_classes, num_classes), np.nan)
    return judgement.fitted.params.transition.matrix()


def for_every_row(
    table: "pd.DataFrame", kind: NDArray[np.int64], rows: NDArray[np.int64]
) -> "pd.DataFrame":
    """Repeat the line of every kind of row for each of its rows, twins one after the other."""
    place = np.empty(len(table), np.int64)
    place[table["row"].to_numpy()] = np.arange(len(table))
    order = np.argsort(place[kind], kind="stable")
    whole = table.iloc[place[kind][order]].reset_index(drop=True)
    whole["row"], whole["rank"] = rows[order], np.arange(1, len(order) + 1)
    whole.attrs = table.attrs
    return whole


def without_extinction(table: "pd.DataFrame") -> "pd.DataFrame":
    """Send rows to review instead of relabelling the last rows of their class away."""
    relabel = (table["action"] == "relabel").to_numpy()
    given, suggested = table["label_given"].to_numpy(), table["label_suggested"].to_numpy()
    lost = np.setdiff1d(given, np.where(relabel, suggested, given))
    if len(lost):
        table.loc[relabel & np.isin(given, lost), "action"] = "review"
    return table


def staying_rows(table: "pd.DataFrame", corrected: NDArray[Any]) -> Ints:
    """Give the rows to train on; a class that would vanish keeps its flagged rows.

    Args:
        table: The issues of the rows that were judged.
        corrected: (N,) the labels of all rows after relabelling.
    """
    gone = np.zeros(len(corrected), bool)
    gone[table["row"].to_numpy()[table["action"].isin(("review", "drop")).to_numpy()]] = True
    left = np.unique(corrected[~gone])
    return np.flatnonzero(~gone | ~np.isin(corrected, left))


def with_signals(table: "pd.DataFrame", signals: Mapping[str, Floats]) -> "pd.DataFrame":
    """Add columns to a table of judged rows, by row and in the order that an audit gives them."""
    place = table.columns.get_loc("p_suggested") + 1
    for name in ("margin", "target_given", "attention"):
        if name in signals:
            table.insert(place, name, signals[name][table["row"].to_numpy()])
    return table
