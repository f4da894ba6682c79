"""A generative class posterior: linear discriminant analysis with responsibilities."""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from labelclean.arrays import ENOUGH_ROWS, Floats, Ints
from labelclean.calibration.constants import judge_constants
from labelclean.evidence.folds import enough_rows, some_rows


def discriminant_scores(components: NDArray[np.float32], shares: Floats, fold: Ints) -> Floats:
    """Give log-odds of the classes from Gaussians fitted without the row's own fold.

    Class c has mean mu_c, weighted by the shares, and prior n_c / n; all classes have one
    covariance S, shrunk towards a sphere. The score of class c is
    x' S^-1 mu_c - mu_c' S^-1 mu_c / 2 + log n_c. Of very many rows a sample is fitted to.

    Args:
        components: (N, D) features, uncorrelated or nearly so.
        shares: (N, C) how much each row belongs to each class, rows sum to one.
        fold: (N,) 0 ... K-1; every row is scored by a model that did not see its fold.

    Returns:
        (N, C) unnormalised log probabilities.
    """
    count, classes = shares.shape
    shrinkage = judge_constants().shrinkage
    scores = np.empty((count, classes))
    known = np.zeros(count, bool)
    known[some_rows(count, enough_rows(classes))] = True
    for k in range(int(fold.max()) + 1):
        out = fold == k
        others = known & ~out
        train, test = components[others].astype(np.float64), components[out].astype(np.float64)
        scores[out] = _fit_and_score(train, shares[others], test, shrinkage)
    return scores


def _fit_and_score(train: Floats, shares: Floats, test: Floats, shrinkage: float) -> Floats:
    size = train.shape[1]
    count = np.maximum(shares.sum(axis=0), 1e-6)
    mean = (shares.T @ train) / count[:, None]
    scatter = train.T @ train - (mean.T * count) @ mean
    scatter /= max(len(train), 1)
    sphere = max(float(np.trace(scatter)) / size, 1e-12)
    scatter = (1 - shrinkage) * scatter + shrinkage * sphere * np.eye(size)
    weights = linalg.solve(scatter, mean.T, assume_a="pos")
    offset = np.log(count / count.sum()) - 0.5 * np.einsum("cd,dc->c", mean, weights)
    scores: Floats = test @ weights + offset
    return scores


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
