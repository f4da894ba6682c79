"""How good a ranking, a cut and a probability of error are, when the truth is known."""

import numpy as np

from labelclean.arrays import Bools, Probs


def average_precision(wrong: Bools, suspicion: Probs) -> float:
    """Area under the precision-recall steps; NaN where no row or every row is wrong."""
    from sklearn.metrics import average_precision_score  # noqa: PLC0415

    if wrong.all() or not wrong.any():
        return float("nan")
    return float(average_precision_score(wrong, suspicion))


def auroc(wrong: Bools, suspicion: Probs) -> float:
    """Chance that a wrong row ranks above a right one; NaN where one kind is missing."""
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    if wrong.all() or not wrong.any():
        return float("nan")
    return float(roc_auc_score(wrong, suspicion))


def f1(wrong: Bools, flagged: Bools) -> float:
    """F1 of a cut: 2 hits / (flagged + wrong)."""
    return 2 * int((flagged & wrong).sum()) / max(1, int(flagged.sum() + wrong.sum()))


def best_f1(wrong: Bools, suspicion: Probs) -> float:
    """The largest F1 any cut of the ranking could reach."""
    from sklearn.metrics import precision_recall_curve  # noqa: PLC0415

    precision, recall, _ = precision_recall_curve(wrong, suspicion)
    return float(np.max(2 * precision * recall / np.maximum(precision + recall, 1e-12)))


def ranking_scores(wrong: Bools, suspicion: Probs, flagged: Bools) -> dict[str, float]:
    """Give the share of wrong rows, and AP, F1 and best F1 of a ranking and its cut."""
    return {
        "true_noise": float(wrong.mean()),
        "ap": average_precision(wrong, suspicion),
        "f1": f1(wrong, flagged),
        "best_f1": best_f1(wrong, suspicion) if wrong.any() else float("nan"),
    }


def calibration_error(wrong: Bools, p_error: Probs, bins: int = 15) -> float:
    """Mean distance of promised and actual error shares over bins of equal numbers of rows."""
    edges = np.quantile(p_error, np.linspace(0, 1, bins + 1))
    at = np.clip(np.searchsorted(edges, p_error, side="right") - 1, 0, bins - 1)
    size = np.bincount(at, minlength=bins)
    gap = np.bincount(at, p_error, bins) - np.bincount(at, wrong.astype(np.float64), bins)
    return float(np.abs(gap).sum() / max(1, size.sum()))
