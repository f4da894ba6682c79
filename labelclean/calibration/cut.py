"""Where to cut a ranking, and what to expect of a cut, from calibrated error probabilities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class CutCurve:
    """What flagging the k most suspect rows is expected to give, for k = 1 ... N.

    Args:
        precision: (N,) expected share of flagged rows that are wrong.
        recall: (N,) expected share of wrong rows that are flagged.
        f1: (N,) plug-in expected F1, 2 (p_1 + ... + p_k) / (k + sum p).
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]


def cut_curve(p_error: NDArray[np.float64]) -> CutCurve:
    """Compute the expected quality of every cut; p_error (N,), most suspect first."""
    found = np.cumsum(p_error)
    total = found[-1] if len(found) else 0.0
    size = np.arange(1, len(found) + 1)
    return CutCurve(found / size, found / max(total, 1e-12), 2 * found / (size + total))


def expected_f1_cut(p_error: NDArray[np.float64]) -> int:
    """Give how many of the rows to flag, most suspect first: the k of the largest expected F1.

    Rows with exactly no doubt are never flagged, so clean data may give 0.
    """
    total = float(p_error.sum())
    sure = int(np.count_nonzero(p_error > 0.5))
    # A row raises the expected F1 only if its p_error is above half the F1 so far. From the rows
    # that are rather wrong than right on, that half grows until the best cut, so no row below
    # `least` can belong to it.
    least = float(p_error[:sure].sum()) / max(sure + total, 1e-12)
    hopeful = np.flatnonzero((p_error >= least) & (p_error > 0))
    if not len(hopeful):
        return 0
    found = np.cumsum(p_error[: hopeful[-1] + 1])
    return int(np.argmax(found / (np.arange(1, len(found) + 1) + total))) + 1
