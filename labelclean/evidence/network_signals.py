"""Everything that one trained network says about how wrong each label is, from its Records."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Floats, Ints
from labelclean.evidence.dynamics import last_seen, mean_over_epochs
from labelclean.evidence.mixture import two_component_mixture
from labelclean.records.records import Records

_FEWEST = 32
"""Rows of one label below which they have no mixture of their own: two humps cannot be told."""


def network_signals(records: Records) -> dict[str, Floats]:
    """Give (N,) suspicion of every given label by each signal that was recorded.

    Higher is more suspect, also of tau and of the target. Early epochs say little about any row, so
    means are over the epochs after the first third; an epoch with another prediction counts
    whenever it was. A signal that was not recorded is left out.

    Args:
        records: What training recorded.
    """
    known = {name: signal(records) for name, signal in _SIGNALS.items()}
    return {name: values for name, values in known.items() if values is not None}


def mean_p(records: Records) -> Floats | None:
    """Give 1 - p(y|x) averaged over the later epochs."""
    if records.mean_probs is not None:
        return 1 - _own(records.mean_probs, records.label)
    return None if records.p_given is None else 1 - mean_over_epochs(_later(records.p_given))


def converged_p(records: Records) -> Floats:
    """Give 1 - p(y|x) of the trained network in evaluation mode."""
    return 1 - _own(records.probs, records.label)


def average_margin(records: Records) -> Floats | None:
    """Give the negative margin averaged over the later epochs (AUM, NeurIPS 2020)."""
    return None if records.margin is None else -mean_over_epochs(_later(records.margin))


def wrong_events(records: Records) -> Floats | None:
    """Give the share of all epochs in which another class was predicted."""
    if records.predicted is None:
        return None
    seen = records.predicted >= 0
    other = (seen & (records.predicted != records.label)).sum(axis=0)
    return np.where(seen.any(axis=0), other / np.maximum(seen.sum(axis=0), 1), np.nan)


def class_mixture(records: Records) -> Floats | None:
    """Give the probability of the less certain of two components, label by label.

    A mixture of the average margins of all rows would call every row of a hard class suspect.
    """
    doubt = average_margin(records)
    if doubt is None:
        return None
    counts = np.bincount(records.label)
    many = np.flatnonzero(counts >= _FEWEST)
    answer = np.empty(len(doubt))
    rest = ~np.isin(records.label, many)
    if rest.any():
        # Rows of rare labels are compared with all others, and keep what that gives them.
        answer[rest] = two_component_mixture(doubt)[rest]
    for label in many.tolist():
        rows = records.label == label
        answer[rows] = two_component_mixture(doubt[rows])
    return answer


def distrust(records: Records) -> Floats | None:
    """Give 1 - tau of the noise-attention loss in the last epoch."""
    return None if records.attention is None else 1 - last_seen(records.attention)


def moved_target(records: Records) -> Floats | None:
    """Give 1 - q(y): how much of the final soft target has left the given label."""
    if records.target is not None:
        return 1 - _own(records.target, records.label)
    return None if records.target_given is None else 1 - last_seen(records.target_given)


_SIGNALS: Mapping[str, Callable[[Records], Floats | None]] = {
    "mean_p": mean_p,
    "converged_p": converged_p,
    "average_margin": average_margin,
    "wrong_events": wrong_events,
    "class_mixture": class_mixture,
    "tau": distrust,
    "target": moved_target,
}


def _own(probs: NDArray[np.float32], label: Ints) -> Floats:
    return probs[np.arange(len(label)), label].astype(np.float64)


def _later(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """(E', N) the epochs after the first third."""
    return values[len(values) // 3 :]
