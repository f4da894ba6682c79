"""Confident learning: class thresholds, the confident joint, and what follows from it."""

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Floats, Ints, Probs

SLACK = 1e-6


def class_thresholds(label: Ints, probs: Probs) -> Floats:
    """(C,) mean probability of a class over the rows that carry its label.

    A class nobody was given gets infinity: it is never the confident one.
    """
    size = probs.shape[1]
    count = np.bincount(label, minlength=size)
    given = probs[np.arange(len(label)), label].astype(np.float64)
    total = np.bincount(label, given, size)
    return np.where(count > 0, total / np.maximum(count, 1), np.inf)


def confident_class(probs: Probs, thresholds: Floats) -> Ints:
    """(N,) most probable class among those at or above their threshold; -1 where there is none."""
    wide = np.asarray(probs, dtype=np.float64)
    sure = wide >= thresholds - SLACK
    best = np.where(sure, wide, -1.0).argmax(axis=1)
    return np.where(sure.any(axis=1), best, -1)


def confident_joint(label: Ints, probs: Probs) -> NDArray[np.int64]:
    """(C, C) counts, rows given label, columns confident class; the diagonal is at least 1.

    Northcutt, Jiang, Chuang: Confident Learning, JAIR 2021.
    """
    size = probs.shape[1]
    best = confident_class(probs, class_thresholds(label, probs))
    seen = best >= 0
    joint = np.bincount(label[seen] * size + best[seen], minlength=size * size)
    joint = joint.reshape(size, size)
    np.fill_diagonal(joint, np.maximum(np.diag(joint), 1))
    return joint


def calibrated_joint(label: Ints, probs: Probs) -> Floats:
    """(C, C) estimated P(given, true): rows scaled to the label counts, sum 1."""
    joint = confident_joint(label, probs).astype(np.float64)
    count = np.bincount(label, minlength=probs.shape[1])
    joint *= (count / joint.sum(axis=1))[:, None]
    share: Floats = joint / max(joint.sum(), 1.0)
    return share
