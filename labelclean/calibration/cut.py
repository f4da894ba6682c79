"""Where to cut a ranking, and what to expect of a cut, from calibrated error probabilities."""

import numpy as np
from numpy.typing import NDArray


def expected_precision(p_error: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N,) expected share of wrong rows among the k most suspect, k = 1 ... N; p_error likewise."""
    precision: NDArray[np.float64] = np.cumsum(p_error) / np.arange(1, len(p_error) + 1)
    return precision


def expected_f1_cut(p_error: NDArray[np.float64], least: float = 0.0) -> int:
    """Give how many of the rows to flag, most suspect first: the k of the largest expected F1.

    That is 2 (p_1 + ... + p_k) / (k + sum p). Flagging nothing is a cut as well: it is perfect
    where there is no error at all, so its expected F1 is the probability of that, (1 - p_1) ...
    (1 - p_N). Clean data may so give 0, and rows without any doubt are never flagged.

    Args:
        p_error: (N,) probabilities, falling.
        least: Rows below that are not flagged.
    """
    total = float(p_error.sum())
    sure = int(np.count_nonzero(p_error > 0.5))
    # A row raises the expected F1 only if its p_error is above half the F1 so far. From the rows
    # that are rather wrong than right on, that half grows until the best cut, so no row below
    # `floor` can belong to it.
    floor = float(p_error[:sure].sum()) / max(sure + total, 1e-12)
    hopeful = np.flatnonzero((p_error >= max(floor, least)) & (p_error > 0))
    if not len(hopeful):
        return 0
    found = np.cumsum(p_error[: hopeful[-1] + 1])
    f1 = 2 * found / (np.arange(1, len(found) + 1) + total)
    best = int(np.argmax(f1))
    if sure:
        return best + 1
    with np.errstate(divide="ignore"):
        nothing = float(np.exp(np.log1p(-p_error).sum()))
    return 0 if nothing >= f1[best] else best + 1
