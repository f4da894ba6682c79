"""Rivals in the same run: cleanlab where it is installed, a vote of neighbours, AUM."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean.errors import ConfigError
from labelclean.evidence.dynamics import mean_over_epochs
from labelclean.evidence.neighbours import nearest_rows

STRENGTHS = (1.0, 0.1, 0.01, 0.001)
_FOLDS = 5
_NEIGHBOURS = 10  # as in SimiFeat


@dataclass(frozen=True, slots=True)
class RivalAnswer:
    """What a method says about N rows.

    Args:
        suspicion: (N,) its ranking.
        flagged: (N,) its cut.
        noise_rate: Its estimate of the share of wrong labels; NaN where it gives none.
        suggested: (N,) the class it holds for the true one; None where it has none.
    """

    suspicion: NDArray[np.floating[Any]]
    flagged: NDArray[np.bool_]
    noise_rate: float
    suggested: NDArray[np.int64] | None = None

    def probable(self, label: NDArray[np.int64]) -> NDArray[np.int64]:
        """(N,) the class it holds for the true one; the given one without one."""
        return label if self.suggested is None else self.suggested


def cleanlab_answer(label: NDArray[np.int64], probs: NDArray[np.floating[Any]]) -> RivalAnswer:
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
    signal = 1 - probs[np.arange(len(label)), label]
    return RivalAnswer(signal, flagged, rate, probs.argmax(axis=1))


def cross_validated(
    features: NDArray[np.floating[Any]], label: NDArray[np.int64], seed: int
) -> NDArray[np.float64]:
    """(N, C) out-of-fold probabilities of logistic regression, over a grid of strengths.

    What a careful user of confident learning does first. The strength is the one that agrees best
    with the given labels.

    Args:
        features: (N, D).
        label: (N,) given labels.
        seed: Of the folds.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.model_selection import StratifiedKFold, cross_val_predict  # noqa: PLC0415

    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    # Whole fits side by side: threads inside a fit wait for each other on busy cores.
    answers = [
        cross_val_predict(
            LogisticRegression(C=strength),
            features,
            label,
            cv=folds,
            n_jobs=-1,
            method="predict_proba",
        )
        for strength in STRENGTHS
    ]
    best: NDArray[np.float64] = max(
        answers, key=lambda answer: float((answer.argmax(axis=1) == label).mean())
    )
    return best


def neighbour_answer(label: NDArray[np.int64], features: NDArray[np.floating[Any]]) -> RivalAnswer:
    """Let the nearest rows vote, each with one voice, as SimiFeat-V does in one round.

    A row is flagged where another class than the given one has most votes. SimiFeat repeats this
    over random crops and subsets; here the features are one look at each row.

    Args:
        label: (N,) given labels.
        features: (N, D), compared by cosine.
    """
    rows, _ = nearest_rows(features, _NEIGHBOURS)
    votes = np.eye(int(label.max()) + 1)[label][rows].mean(axis=1)
    suggested = votes.argmax(axis=1)
    own = votes[np.arange(len(label)), label]
    # A tie with the given label is no majority against it.
    flagged = votes.max(axis=1) > own
    return RivalAnswer(1 - own, flagged, float(flagged.mean()), np.where(flagged, suggested, label))


def aum_answer(margin: NDArray[np.floating[Any]]) -> RivalAnswer:
    """Rank by the area under the margin (Pleiss et al., 2020).

    The paper finds its cut by training on rows of a made-up class; here rows are flagged over whose
    epochs another class led on average.

    Args:
        margin: (E, N) margins of the epochs before the rate first drops.
    """
    suspicion = -mean_over_epochs(margin)
    flagged = suspicion > 0
    return RivalAnswer(suspicion, flagged, float(flagged.mean()))
