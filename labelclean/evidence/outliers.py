"""Which pictures show none of the classes: distances and dispute, weighed on planted pictures.

Three signals tell an outlier: the distance to the nearest class, the distance to all rows, and how
many classes are among the nearest rows; that the label is surprising is the fourth.

What was planted is not what is there, so the outliers found first are learnt from in their turn: a
ridge regression of their probability on the features says how much each other row is like them.
Twice that likeness takes the place of the signals, where it tells the outliers found from the rest;
otherwise nothing but a surprising label would be left, and wrong labels would count as outliers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.metrics import roc_auc_score

from labelclean.arrays import ENOUGH_ROWS, Bools, Floats, Ints, Probs, Singles
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.outliers import (
    believed_rows,
    fit_mixture,
    found_log_ratio,
    label_likelihood,
    mixture_probability,
    planted_log_ratios,
)
from labelclean.evidence.folds import some_rows
from labelclean.evidence.neighbours import EXACT_ROWS, unit_rows, vote

SHRINKAGE = 0.5
TOLD_APART = 0.7
"""AUROC of planted pictures from which on there is a basis for probabilities."""
FOUND_APART = 0.75
"""The same of outliers found, to judge by them: 40 % even flips without an outlier reach .70."""
LIKENESS_RIDGE = 3.0  # share of the mean variance of a component that is added to every one
_ROUNDS = 2
_BLOCK = 1 << 13


@dataclass(frozen=True, slots=True)
class RowFeatures:
    """Features of N rows, and who is near whom.

    Args:
        features: (N, D) scaled features.
        components: (N, M) their principal components.
        near: (N, k) the nearest rows of each.
        similar: (N, k) how similar these are.
        fold: (N,) folds in which copies of a picture are together.
    """

    features: Singles
    components: Singles
    near: Ints
    similar: Singles
    fold: NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class PlantedOutliers:
    """Pictures made to show none of the classes, as features.

    Args:
        features: (P, D) scaled as those of the rows are.
        kind: (P,) what kind, 0 ... K-1.
        made_of: (P, 2) the rows whose pictures each is made of.
    """

    features: Singles
    kind: Ints
    made_of: Ints


@dataclass(frozen=True, slots=True)
class OutlierEvidence:
    """What is known about outliers among N rows.

    Args:
        probability: (N,) that a row shows none of the classes; None: there is no basis for it.
        shares: Share of rows that are outliers like each planted kind; one share, where those that
            were found first tell better.
        auroc: How well planted pictures are told from the data set's own, by picture alone.
    """

    probability: Floats | None
    shares: tuple[float, ...]
    auroc: float


def find_outliers(
    rows: RowFeatures,
    planted: PlantedOutliers,
    probs: Probs,
    label: Ints,
    table: Floats,
    verified: Bools | None = None,
) -> OutlierEvidence:
    """Give every row the probability that it shows none of the classes.

    Measured with 5 % pictures of other data sets under a label: recipes/README.md.

    Args:
        rows: The rows' features.
        planted: Pictures that show none of the classes, to learn from.
        probs: (N, C) class posteriors that did not see the row's own label.
        label: (N,) given labels.
        table: (C, C) P(given | true), rows sum to one.
        verified: (N,) rows whose label a person vouched for, which are no outliers; None: none.
    """
    right, wrong = label_likelihood(label, probs, table)
    weight = believed_rows(right, verified)
    own, others = _signals(rows, planted, np.asarray(probs, np.float64))
    ratio = planted_log_ratios(own, others, planted.kind, weight)
    real, strange = ratio[: len(label)], ratio[len(label) :]
    auroc = float(
        roc_auc_score(
            np.repeat([0, 1], [len(real), len(strange)]),
            np.concatenate([real.max(axis=1), strange.max(axis=1)]),
            sample_weight=np.concatenate([weight, np.ones(len(strange))]),
        )
    )
    if auroc < TOLD_APART:
        return OutlierEvidence(None, (), auroc)
    classes = probs.shape[1]
    some = some_rows(len(label), ENOUGH_ROWS)
    if verified is not None:
        some = some[~verified[some]]

    def ask(log_ratio: Floats) -> tuple[Floats, Floats]:
        mixture = fit_mixture(log_ratio[some], right[some], wrong[some], classes)
        found = mixture_probability(mixture, log_ratio, right, wrong, classes)
        return (found if verified is None else np.where(verified, 0.0, found)), mixture.shares

    found, shares = ask(real)
    learn = _RidgeOutOfFold(rows.components, rows.fold)
    for _ in range(_ROUNDS):
        likeness = learn(found)
        if _told_apart(likeness, found, weight) < FOUND_APART:
            break
        found, shares = ask(found_log_ratio(likeness, found, weight, rows.fold)[:, None])
    return OutlierEvidence(found, tuple(shares.tolist()), auroc)


def _told_apart(likeness: Floats, found: Floats, weight: Floats) -> float:
    """AUROC of a likeness (N,), each row as much an outlier as it was found to be."""
    sides = np.repeat([1, 0], len(found))
    sure = np.concatenate([found, (1 - found) * weight])
    return float(roc_auc_score(sides, np.tile(likeness, 2), sample_weight=sure + 1e-12))


def _signals(rows: RowFeatures, planted: PlantedOutliers, shares: Floats) -> tuple[Floats, Floats]:
    """(N, 3) signals of the rows, and (P, 3) of what was planted; shares (N, C)."""
    middle, k = rows.features.mean(axis=0), rows.near.shape[1]
    made = _project(planted.features, rows, middle)
    width = judge_constants().near_components
    near, similar = _nearest_to(made[:, :width], rows.components[:, :width], planted.made_of, k)
    votes = vote(rows.near, rows.similar, shares), vote(near, similar, shares)
    to_class = _class_distances(rows, made, shares)
    to_all = [_squares(values, middle) for values in (rows.features, planted.features)]
    distance = np.log(np.maximum(np.column_stack([to_class, np.concatenate(to_all)]), 1e-9))
    every = np.column_stack([distance, np.concatenate([_entropy(one) for one in votes])])
    return every[: len(rows.features)], every[len(rows.features) :]


def _project(planted: Singles, rows: RowFeatures, middle: Singles) -> Floats:
    """(P, M) principal components of planted features (P, D), along the directions of the rows'.

    The rows' are X V with V'X'X V diagonal, so V = X'(X V) / that diagonal.
    """
    features, components = rows.features, rows.components
    size = np.maximum((components.astype(np.float64) ** 2).sum(axis=0), 1e-12)
    directions = (features.T @ components - np.outer(middle, components.sum(axis=0))) / size
    found: Floats = (planted - middle) @ directions
    return found


def _squares(values: Singles, middle: Singles) -> Floats:
    """(n,) squared distance of rows to a point, in all directions of the features alike."""
    found = np.empty(len(values))
    for begin in range(0, len(values), _BLOCK):
        apart = values[begin : begin + _BLOCK] - middle
        found[begin : begin + _BLOCK] = np.einsum("id,id->i", apart, apart)
    return found


def _class_distances(rows: RowFeatures, made: Floats, shares: Floats) -> Floats:
    """(N + P,) squared distance to the nearest class, out of fold.

    One covariance inside classes, shrunk half-way towards a sphere, measures it.
    """
    components, fold = rows.components, rows.fold
    count = len(components)
    every = np.concatenate([components, made.astype(np.float32)])
    names = np.unique(fold)
    folds = np.concatenate([fold, names[np.arange(len(made)) % len(names)]])
    known = some_rows(count, ENOUGH_ROWS)
    found = np.empty(len(every))
    for left_out in names:
        seen = known[fold[known] != left_out]
        points, belongs = components[seen].astype(np.float64), shares[seen]
        size = belongs.sum(axis=0) + 1e-6
        mean = (belongs.T @ points) / size[:, None]
        scatter = points.T @ points / len(points) - (mean.T * (size / len(points))) @ mean
        sphere = max(float(np.trace(scatter)) / len(scatter), 1e-12)
        shrunk = (1 - SHRINKAGE) * scatter + SHRINKAGE * sphere * np.eye(len(scatter))
        root = linalg.cholesky(shrunk, lower=True, check_finite=False)
        centres = linalg.solve_triangular(root, mean.T, lower=True).T
        asked = np.flatnonzero(folds == left_out)
        for begin in range(0, len(asked), _BLOCK):
            part = asked[begin : begin + _BLOCK]
            white = linalg.solve_triangular(root, every[part].T.astype(np.float64), lower=True).T
            squares = (white**2).sum(axis=1)[:, None] - 2 * white @ centres.T
            found[part] = (squares + (centres**2).sum(axis=1)).min(axis=1)
    return found


class _RidgeOutOfFold:
    """Regresses numbers of N rows on their components, every row's by the other folds.

    Args:
        components: (N, M) principal components.
        fold: (N,) folds.
    """

    def __init__(self, components: Singles, fold: NDArray[np.integer]) -> None:
        self.components, self.fold = components, fold
        inside = [np.flatnonzero(fold == one) for one in np.unique(fold)]
        products = [components[rows].T @ components[rows] for rows in inside]
        whole = np.sum(products, axis=0, dtype=np.float64)
        self.parts = []
        for rows, product in zip(inside, products, strict=True):
            seen = whole - product
            seen[np.diag_indices_from(seen)] += (
                LIKENESS_RIDGE * max(float(np.trace(seen)), 1e-9) / len(seen)
            )
            self.parts.append((rows, linalg.cho_factor(seen, check_finite=False)))

    def __call__(self, target: Floats) -> Floats:
        """(N,) what the components say of a target (N,)."""
        middle = target - target.mean()
        shares = [self.components[rows].T @ middle[rows] for rows, _ in self.parts]
        whole, found = np.sum(shares, axis=0), np.empty(len(target))
        for (rows, factor), share in zip(self.parts, shares, strict=True):
            found[rows] = self.components[rows] @ linalg.cho_solve(factor, whole - share)
        return found


def _nearest_to(made: Floats, rows: Singles, made_of: Ints, k: int) -> tuple[Ints, Singles]:
    """(P, k) the rows nearest to what was made, none of which it was made of, and how similar."""
    known = some_rows(len(rows), EXACT_ROWS)
    unit = unit_rows(np.concatenate([rows[known], made.astype(np.float32)]))
    unit, asking = unit[: len(known)], unit[len(known) :]
    k = min(k, len(known))
    near, similar = np.empty((len(made), k), np.int64), np.empty((len(made), k), np.float32)
    for begin in range(0, len(made), 256):
        part = slice(begin, begin + 256)
        likeness = asking[part] @ unit.T
        for parents in made_of[part].T:
            at = np.minimum(np.searchsorted(known, parents), len(known) - 1)
            own = np.flatnonzero(known[at] == parents)
            likeness[own, at[own]] = -1.0
        best = np.argsort(-likeness, axis=1, kind="stable")[:, :k]
        near[part], similar[part] = known[best], np.take_along_axis(likeness, best, axis=1)
    return near, similar


def _entropy(probs: Floats) -> Floats:
    found: Floats = -(probs * np.log(probs + 1e-9)).sum(axis=1)
    return found
