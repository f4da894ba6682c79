"""cleanlab, where it is installed: the rival in the same run."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Answer:
    """What a method says about N rows.

    Args:
        suspicion: (N,) its ranking.
        flagged: (N,) its cut.
        noise_rate: Its estimate of the share of wrong labels; NaN where it gives none.
    """

    suspicion: NDArray[np.floating[Any]]
    flagged: NDArray[np.bool_]
    noise_rate: float


def cleanlab_answer(label: NDArray[np.int64], probs: NDArray[np.floating[Any]]) -> Answer:
    """Run cleanlab with its defaults: cut, self-confidence ranking, number of issues."""
    try:
        from cleanlab.count import num_label_issues  # noqa: PLC0415
        from cleanlab.filter import find_label_issues  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            "this comparison needs cleanlab: pip install 'labelclean[benchmark]'."
        ) from error
    flagged = np.asarray(find_label_issues(label, probs, n_jobs=1), dtype=bool)
    rate = float(num_label_issues(label, probs)) / len(label)
    return Answer(1 - probs[np.arange(len(label)), label], flagged, rate)
