"""Suspicion from what training recorded over the epochs; arrays (E, N), higher is more suspect."""

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Floats, Ints


def mean_over_epochs(values: NDArray[np.floating]) -> Floats:
    """(N,) mean over the epochs a sample was seen in; NaN where it never was."""
    seen = np.isfinite(values)
    count = seen.sum(axis=0)
    total = np.where(seen, values, 0.0).sum(axis=0, dtype=np.float64)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def last_seen(values: NDArray[np.floating]) -> Floats:
    """(N,) value of the last epoch a sample was seen in; NaN where it never was."""
    seen = np.isfinite(values)
    last = len(values) - 1 - seen[::-1].argmax(axis=0)
    found = values[last, np.arange(values.shape[1])].astype(np.float64)
    return np.where(seen.any(axis=0), found, np.nan)


def forgetting(predicted: NDArray[np.int32], label: Ints) -> Floats:
    """(N,) how hard a label was to learn and to keep, 0 to 1.

    Counts the epochs in which a sample went from predicted as labelled to not (Toneva et al., ICLR
    2019) and, because a sample that is never learned is never forgotten yet the most suspect of
    all, the epochs in which it was not predicted as labelled; both as shares of its epochs, the
    events weighing half. NaN where a sample was never seen.
    """
    seen = predicted >= 0
    right = (predicted == label) & seen
    epochs = seen.sum(axis=0)
    events = np.zeros(predicted.shape[1])
    before = np.zeros(predicted.shape[1], dtype=bool)
    for now, here in zip(right, seen, strict=True):
        events += before & ~now & here
        before = np.where(here, now, before)
    wrong = epochs - right.sum(axis=0)
    share = (wrong + 0.5 * events) / np.maximum(1.5 * epochs, 1)
    return np.where(epochs > 0, share, np.nan)
