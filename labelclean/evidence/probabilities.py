"""Suspicion from probabilities: functions of (labels, probabilities); higher is more suspect."""

import numpy as np
from scipy.special import xlogy

from labelclean.arrays import Floats, Ints, Probs


def of_given(label: Ints, probs: Probs) -> Floats:
    """(N,) probability of the given label."""
    return probs[np.arange(len(label)), label].astype(np.float64)


def rival(label: Ints, probs: Probs) -> tuple[Ints, Floats]:
    """Give the most probable class other than the given one, and its probability."""
    others = np.array(probs, dtype=np.float64)
    others[np.arange(len(label)), label] = -1.0
    best = others.argmax(axis=1)
    return best, others[np.arange(len(label)), best]


def self_confidence(label: Ints, probs: Probs) -> Floats:
    """1 - p(y|x)."""
    return 1.0 - of_given(label, probs)


def probability_margin(label: Ints, probs: Probs) -> Floats:
    """Largest other probability minus that of the given label, -1 to 1."""
    return rival(label, probs)[1] - of_given(label, probs)


def normalised_margin(label: Ints, probs: Probs) -> Floats:
    """1 - (p_y - max_other + 1) / 2, the margin on the scale 0 to 1 (confident learning)."""
    return (1.0 + probability_margin(label, probs)) / 2.0


def confidence_weighted_entropy(label: Ints, probs: Probs) -> Floats:
    """1 - log(1 + r) / r with r = normalised entropy / p(y|x) (confident learning).

    The limits are taken where r is 0 (the model is certain of the given label: 0) or infinite
    (the given label has no probability: 1).
    """
    wide = np.asarray(probs, dtype=np.float64)
    entropy = -xlogy(wide, wide).sum(axis=1) / np.log(max(wide.shape[1], 2))
    given = np.maximum(of_given(label, probs), 1e-12)
    ratio = np.maximum(entropy, 1e-12) / given
    doubt: Floats = np.clip(1.0 - np.log1p(ratio) / ratio, 0.0, 1.0)
    return doubt


def forward_corrected(label: Ints, probs: Probs, transition: Floats) -> Floats:
    """1 - p_y T_yy / (p T)_y, where probs are of the true class and T[c, k] = P(given k | true c).

    The chance that the given label is not the true one, if T is right.
    """
    given = of_given(label, probs) * np.diag(transition)[label]
    seen = np.einsum("ic,ic->i", probs, transition.T[label])
    # Both vanish where the label cannot arise from what the model sees: wrong for certain.
    right: Floats = np.divide(given, seen, out=np.zeros_like(given), where=seen > 0)
    return 1.0 - right
