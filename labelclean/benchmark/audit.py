"""The default audit beside cleanlab as a careful user runs it, on the same features."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labelclean.benchmark.metrics import calibration_error, ranking_scores
from labelclean.benchmark.rivals import cleanlab_answer, cross_validated
from labelclean.correction.actions import KEEP, RELABEL
from labelclean.correction.judging import judge_evidence
from labelclean.data.manifest import Manifest
from labelclean.errors import ConfigError
from labelclean.options import TOTAL, Clock, RunOptions
from labelclean.outputs.truth import Truth
from labelclean.recipe import Recipe
from labelclean.training.runtime import Runtime
from labelclean.workflows.collect import collect_evidence
from labelclean.workflows.observe import observe


@dataclass(frozen=True, slots=True)
class AuditScore:
    """How good one method was on one column of labels.

    Args:
        labels: The column.
        method: `labelclean` or `cleanlab`.
        true_noise, estimate: Share of wrong labels, true and estimated.
        ap: Average precision of the ranking.
        f1, best_f1: Of the cut, and of the best cut of the same ranking.
        calibration: Error of p_error; None for cleanlab, which gives none.
        accuracy_before: Share of right labels as given.
        accuracy_flagged: If every suggestion on flagged rows is taken.
        relabelled, relabelled_right: Rows changed without asking, and the share made right.
        features, rest: Seconds for features, and for all else.
    """

    labels: str
    method: str
    true_noise: float
    estimate: float | None
    ap: float
    f1: float
    best_f1: float
    calibration: float | None
    accuracy_before: float
    accuracy_flagged: float
    relabelled: int
    relabelled_right: float | None
    features: float
    rest: float


def score_audit(
    manifest: Manifest,
    truth: Truth,
    recipe: Recipe,
    runtime: Runtime,
    options: RunOptions,
    rival: bool,
) -> list[AuditScore]:
    """Audit a manifest whose truth is known, and let cleanlab do the same on the same features.

    Raises:
        ConfigError: A rival was asked for, and the mode leaves no frozen features to share.
    """
    clock = Clock()
    timed = replace(options, progress=clock.timed(options.progress))
    seen = observe(manifest, recipe, runtime, options=timed)
    found = judge_evidence(manifest, collect_evidence(seen), {}, policy=recipe.correction)
    seconds = clock.timings()
    features_took = seconds["decode"] + seconds["duplicates"] + seconds["features"]
    rest = seconds[TOTAL] - features_took
    order = found.row
    true, given = truth.label[order], found.given
    wrong, flagged = given != true, found.action != KEEP
    moved = found.action == RELABEL
    taken = np.where(flagged, found.suggested, given)
    ours = AuditScore(
        labels=str(manifest.label_col),
        method="labelclean",
        **ranking_scores(wrong, found.p_error, flagged),
        estimate=found.noise_rate,
        calibration=calibration_error(wrong, found.p_error),
        accuracy_before=float((given == true).mean()),
        accuracy_flagged=float((taken == true).mean()),
        relabelled=int(moved.sum()),
        relabelled_right=float((found.suggested == true)[moved].mean()) if moved.any() else None,
        features=features_took,
        rest=rest,
    )
    if not rival:
        return [ours]
    if seen.fitted.records.embedding is None or seen.features is None:
        raise ConfigError("--against cleanlab shares frozen features; use --mode head.")
    label = manifest.label[seen.rows]
    theirs = _cleanlab(seen.fitted.records.embedding, label, truth.label[seen.rows], runtime.seed)
    shared = {"labels": ours.labels, "method": "cleanlab", "features": features_took}
    return [ours, AuditScore(**shared, **theirs)]  # type: ignore[arg-type]


def _cleanlab(
    features: NDArray[np.float32], label: NDArray[np.int64], true: NDArray[np.int64], seed: int
) -> Mapping[str, object]:
    """Cross-validate logistic regression over a grid of strengths; cleanlab's defaults after it."""
    began = time.perf_counter()
    answer = cleanlab_answer(label, cross_validated(features, label, seed))
    flagged, wrong = answer.flagged, label != true
    taken = np.where(flagged, answer.probable(label), label)
    return {
        **ranking_scores(wrong, answer.suspicion, flagged),
        "estimate": answer.noise_rate,
        "calibration": None,
        "accuracy_before": float((~wrong).mean()),
        "accuracy_flagged": float((taken == true).mean()),
        "relabelled": int(flagged.sum()),
        "relabelled_right": float((taken == true)[flagged].mean()) if flagged.any() else None,
        "rest": time.perf_counter() - began,
    }
