"""Rivals that judge the same features or margins as a cell."""

import numpy as np
from numpy.typing import NDArray

from labelclean.benchmark.metrics import auroc, average_precision, f1
from labelclean.benchmark.rivals import (
    aum_answer,
    cleanlab_answer,
    cross_validated,
    neighbour_answer,
)
from labelclean.workflows.observe import Observation


def rival_measure(name: str) -> str:
    """Give the measure that a cell has if a rival was asked."""
    return f"against_{name}_ap"


def measure_rival(
    name: str,
    seen: Observation,
    known: NDArray[np.bool_],
    true: NDArray[np.int64],
    seed: int,
) -> dict[str, float | None]:
    """Let a rival judge what the model saw of all rows, and score it where the truth is known.

    Args:
        name: `cleanlab`, `knn` or `aum`.
        seen: A finished training of n rows.
        known: (n,) rows whose truth is known.
        true: Their true labels.
        seed: Of the rival's folds.
    """
    records, training = seen.fitted.records, seen.recipe.training
    label = records.label
    if records.embedding is None or records.margin is None:
        raise TypeError("these records hold no features or margins for a rival")
    if name == "cleanlab":
        # Scaled, as a careful user does before a linear model.
        spread = records.embedding.std(axis=0)
        features = (records.embedding - records.embedding.mean(axis=0)) / np.maximum(spread, 1e-6)
        answer = cleanlab_answer(label, cross_validated(features, label, seed))
    elif name == "knn":
        answer = neighbour_answer(label, records.embedding)
    else:
        share = training.milestones[0] if training.schedule == "step" else 1.0
        answer = aum_answer(records.margin[: max(1, round(share * len(records.margin)))])
    wrong, flagged = (label[known] != true), answer.flagged[known]
    found = {
        rival_measure(name): finite_or_none(average_precision(wrong, answer.suspicion[known])),
        f"against_{name}_auroc": finite_or_none(auroc(wrong, answer.suspicion[known])),
        f"against_{name}_f1": f1(wrong, flagged),
        f"against_{name}_noise_rate_error": abs(answer.noise_rate - float(wrong.mean())),
    }
    if answer.suggested is not None:
        taken = np.where(flagged, answer.suggested[known], label[known])
        found[f"against_{name}_label_accuracy"] = float((taken == true).mean())
    return found


def finite_or_none(value: float) -> float | None:
    """Give a measure as it is stored: None where it does not exist."""
    return None if np.isnan(value) else value
