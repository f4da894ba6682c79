"""A generative class posterior: linear discriminant analysis with responsibilities."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from labelclean.arrays import ENOUGH_ROWS, Floats, Ints
from labelclean.calibration.constants import judge_constants
from labelclean.evidence.folds import enough_rows, some_rows

_CHOICE_ROWS = 8192


def discriminant_scores(
    components: NDArray[np.float32], shares: Floats, fold: Ints, shrinkages: Sequence[float]
) -> tuple[NDArray[np.float32], Floats]:
    """Give log-odds of the classes from Gaussians fitted without the row's own fold.

    Class c has mean mu_c, weighted by the shares, and prior n_c / n; all classes have one
    covariance S, shrunk towards a sphere. The score of class c is
    x' S^-1 mu_c - mu_c' S^-1 mu_c / 2 + log n_c. Of very many rows a sample is fitted to.

    Args:
        components: (N, D) features, uncorrelated or nearly so.
        shares: (N, C) how much each row belongs to each class, rows sum to one.
        fold: (N,) 0 ... K-1; every row is scored by a model that did not see its fold.
        shrinkages: (S,) shares of the sphere in the covariance.

    Returns:
        (S, N, C) unnormalised log probabilities, and (S, N) squared distances to the nearest class.
    """
    count, classes = shares.shape
    scores = np.empty((len(shrinkages), count, classes), np.float32)
    distance = np.empty((len(shrinkages), count))
    known = some_rows(count, enough_rows(classes))
    # Fold by fold: all rows at once in double precision would take 4 kB each.
    members = [known[fold[known] == k] for k in range(int(fold.max()) + 1)]
    gram, sums, total = 0.0, 0.0, shares[known].sum(axis=0)
    for rows in members:
        part = components[rows].astype(np.float64)
        gram, sums = gram + part.T @ part, sums + shares[rows].T @ part
    for k, rows in enumerate(members):
        test = components[fold == k].astype(np.float64)
        left, part = components[rows].astype(np.float64), shares[rows]
        number = np.maximum(total - part.sum(axis=0), 1e-6)
        mean = (sums - part.T @ left) / number[:, None]
        scatter = gram - left.T @ left - (mean.T * number) @ mean
        scatter /= max(len(known) - len(left), 1)
        prior = np.log(number / number.sum())
        for at, shrinkage in enumerate(shrinkages):
            scores[at, fold == k], distance[at, fold == k] = _score(
                test, mean, scatter, prior, shrinkage
            )
    return scores, distance


def _score(
    test: Floats, mean: Floats, scatter: Floats, prior: Floats, shrinkage: float
) -> tuple[Floats, Floats]:
    size = len(scatter)
    sphere = max(float(np.trace(scatter)) / size, 1e-12)
    shrunk = (1 - shrinkage) * scatter
    shrunk[np.diag_indices(size)] += shrinkage * sphere
    root = linalg.cholesky(shrunk, lower=True, check_finite=False)
    centres = linalg.solve_triangular(root, mean.T, lower=True, check_finite=False)
    white = linalg.solve_triangular(root, test.T, lower=True, check_finite=False)
    fit = white.T @ centres - 0.5 * (centres**2).sum(axis=0)
    return fit + prior, (white**2).sum(axis=0) - 2 * fit.max(axis=1)


def choose_shrinkage(
    components: NDArray[np.float32], shares: Floats, fold: Ints, label: Ints, transition: Floats
) -> float:
    """Give the shrinkage under which held-out scores explain the given labels best.

    Args:
        components: (N, D) features; of many rows a sample is looked at.
        shares: (N, C) how much each row belongs to each class.
        fold: (N,) 0 ... K-1.
        label: (N,) given labels.
        transition: (C, C) P(given | true), rows sum to one.
    """
    shrinkages = judge_constants().shrinkages
    rows = some_rows(len(label), _CHOICE_ROWS)
    scores, _ = discriminant_scores(components[rows], shares[rows], fold[rows], shrinkages)
    seen = transition[:, label[rows]].T
    explained = []
    for one in scores:
        wide = one.astype(np.float64)
        probs = at_scale(wide, likely_scale(wide, label[rows], transition))
        explained.append(float(np.log((probs * seen).sum(axis=1) + 1e-12).mean()))
    return shrinkages[int(np.argmax(explained))]


def likely_scale(scores: Floats, label: Ints, transition: Floats) -> float:
    """Give the scale at which scores best explain the given labels.

    How sure a model is depends on its size and training as much as on the data: Gaussians with one
    covariance are far too sure, a strongly regularised head on few features far too unsure. The
    scale t that maximises sum_i log sum_c softmax(t scores_i)_c T[c, given_i] is found on a grid;
    of more than ENOUGH_ROWS rows a sample is looked at.

    Args:
        scores: (N, C) unnormalised log probabilities that did not see the row's own label.
        label: (N,) given labels.
        transition: (C, C) P(given | true), rows sum to one.
    """
    if len(label) > ENOUGH_ROWS:
        rows = some_rows(len(label), ENOUGH_ROWS)
        scores, label = scores[rows], label[rows]
    seen = transition[:, label].T
    known = judge_constants()
    scales = np.geomspace(known.least_scale, known.most_scale, known.scales)
    explained = [
        np.log((at_scale(scores, scale) * seen).sum(axis=1) + 1e-12).mean() for scale in scales
    ]
    return float(scales[int(np.argmax(explained))])


def at_scale(scores: Floats, scale: float) -> Floats:
    """(N, C) softmax of scale times scores."""
    probs: Floats = scores - scores.max(axis=1, keepdims=True)
    probs *= scale
    np.exp(probs, out=probs)
    probs /= probs.sum(axis=1, keepdims=True)
    return probs
