"""cleanlab's array functions, answered by our judge: `from labelclean.compat import cleanlab`.

The documented subset: `labels` are integers 0 to C-1, `pred_probs` is (N, C); multi-label data and
the tuning parameters of confident learning are refused rather than ignored.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelclean.catalogue import unknown_name
from labelclean.errors import ConfigError
from labelclean.evidence import probabilities
from labelclean.workflows.find import find_label_issues as judge_labels

FILTERS = ("prune_by_noise_rate", "low_self_confidence", "predicted_neq_given")
_SCORES = {
    "self_confidence": probabilities.self_confidence,
    "normalized_margin": probabilities.normalised_margin,
    "confidence_weighted_entropy": probabilities.confidence_weighted_entropy,
}


def find_label_issues(
    labels: ArrayLike,
    pred_probs: NDArray[np.floating[Any]],
    *,
    return_indices_ranked_by: str | None = None,
    filter_by: str = "prune_by_noise_rate",
    n_jobs: int | None = None,
    verbose: bool = False,
    **refused: object,
) -> NDArray[np.bool_] | NDArray[np.int64]:
    """Find the rows whose label is probably wrong.

    Args:
        labels: (N,) integers.
        pred_probs: (N, C) out-of-sample probabilities.
        return_indices_ranked_by: None for a mask, or a score name for the flagged rows ordered by
            that score, worst first.
        filter_by: "predicted_neq_given" flags plain disagreement; the other names all mean our
            cut of the largest expected F1.
        n_jobs: Accepted; the judge needs one process.
        verbose: Accepted; the judge prints nothing.
        refused: Any other parameter of cleanlab raises ConfigError.

    Returns:
        (N,) mask, or the flagged rows.
    """
    if refused:
        raise ConfigError(f"not part of the compatible subset: {', '.join(sorted(refused))}.")
    if filter_by not in FILTERS:
        raise unknown_name("filter", filter_by, FILTERS)
    ranking = None if return_indices_ranked_by is None else _score(return_indices_ranked_by)
    table = judge_labels(labels, pred_probs)
    given = np.asarray(labels)
    if filter_by == "predicted_neq_given":
        mask: NDArray[np.bool_] = np.asarray(pred_probs).argmax(axis=1) != given
    else:
        mask = np.zeros(len(table), dtype=bool)
        mask[table.loc[table["action"] != "keep", "row"].to_numpy()] = True
    if ranking is None:
        return mask
    rows = np.flatnonzero(mask)
    ranked: NDArray[np.int64] = rows[
        np.argsort(-ranking(given, np.asarray(pred_probs))[rows], kind="stable")
    ]
    return ranked


def get_label_quality_scores(
    labels: ArrayLike,
    pred_probs: NDArray[np.floating[Any]],
    *,
    method: str = "self_confidence",
    adjust_pred_probs: bool = False,
) -> NDArray[np.float64]:
    """Score every label between 0 and 1, low = bad (cleanlab's polarity, the reverse of ours).

    Args:
        labels: (N,) integers.
        pred_probs: (N, C) out-of-sample probabilities.
        method: "self_confidence", "normalized_margin" or "confidence_weighted_entropy".
        adjust_pred_probs: Not part of the compatible subset; True raises ConfigError.
    """
    if adjust_pred_probs:
        raise ConfigError("not part of the compatible subset: adjust_pred_probs.")
    score = _score(method)
    given = np.asarray(labels, dtype=np.int64)
    quality: NDArray[np.float64] = 1.0 - score(given, np.asarray(pred_probs))
    return quality


def _score(name: str) -> Any:
    if name not in _SCORES:
        raise unknown_name("label quality score", name, _SCORES)
    return _SCORES[name]
