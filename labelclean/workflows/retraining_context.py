"""One training of a retraining: on some rows, measured on rows it never saw."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean import losses
from labelclean.data.scan import Scan
from labelclean.options import RunOptions
from labelclean.recipe import Recipe
from labelclean.runs.reading import StoredRun
from labelclean.runs.relabelled import Relabelled
from labelclean.training.runtime import Runtime
from labelclean.training.samples import Fitted
from labelclean.training.selection import require_validation, select_samples
from labelclean.training.settings import LossSettings
from labelclean.workflows.evaluation_split import (
    EvaluationSplit,
    a_tenth,
    evaluation_accuracy,
    measures,
)
from labelclean.workflows.fitting import make_fitter
from labelclean.workflows.observe import feature_cache
from labelclean.workflows.predict import spread

PLAIN = "cce"


@dataclass(frozen=True, slots=True)
class RetrainingContext:
    """What all trainings of a retraining share."""

    run: StoredRun
    data: Relabelled
    scan: Scan
    evaluation: EvaluationSplit
    recipe: Recipe
    runtime: Runtime
    options: RunOptions
    work: Path
    labels_from: str


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished training.

    Args:
        found: What it measured.
        probs: (N, C) what it says about every row; NaN where not readable.
        fitted: The model.
        recipe: The settings, all resolved.
    """

    found: dict[str, Any]
    probs: NDArray[np.float32]
    fitted: Fitted
    recipe: Recipe


def train_rows(
    context: RetrainingContext,
    label: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    name: str,
    trust: NDArray[np.float64] | None = None,
) -> Trained:
    """Train on some rows and measure; rows of the evaluation split are never among them.

    With `trust` (N,) a row counts as much as its label is likely to be right: rows to review keep
    their labels until somebody looks, and must not teach what is probably wrong.
    """
    recipe, runtime, manifest = context.recipe, context.runtime, context.data.manifest
    own = np.full(len(label), "") if manifest.split is None else manifest.split.astype(str)
    apart = np.where((own == "val") & ~context.data.audited, "val", "test")
    split = np.where(chosen & ~context.evaluation.rows, "train", apart).astype(object)
    settings = replace(recipe.data, audit_split=None)
    weight = manifest.sample_weight
    if trust is not None:
        weight = trust if weight is None else trust * weight
    part = replace(manifest, label=label, split=split, sample_weight=weight)
    samples, _ = select_samples(part, context.scan, settings)
    n = samples.trained
    training = recipe.training.resolved(recipe.training.mode, n, runtime.processes)
    require_validation(training, samples)
    resolved = replace(recipe, training=training)
    curve: list[float] = []

    def watch(other: NDArray[np.float32]) -> None:
        curve.append(
            evaluation_accuracy(spread(other, samples.rows[n:], len(label)), context.evaluation)
        )

    workspace = context.work / name.replace(" ", "-")
    workspace.mkdir(parents=True, exist_ok=True)
    with feature_cache(context.options, context.work) as cache:
        fitter = make_fitter(samples, resolved, runtime, cache, workspace)
        context.options.log(f"{name}: {recipe.loss.name} on {n} rows")
        loss = losses.build(recipe.loss.name, **recipe.loss.params)
        # On frozen features a look at these rows costs next to nothing, with a network it does not.
        fitted = fitter.fit(
            loss, context.options.progress, watch if training.mode == "head" else None
        )
    said = np.concatenate([fitted.records.probs, fitted.other_probs])
    probs = spread(said, samples.rows, len(label))
    found = measured(context, probs, curve, n)
    return Trained(found, probs, fitted, resolved)


def measured(
    context: RetrainingContext, probs: NDArray[np.float32], curve: list[float], trained: int
) -> dict[str, Any]:
    """Say how good (N, C) probabilities are, and the best of an accuracy after every epoch."""
    found: dict[str, Any] = {
        "trained_rows": trained,
        **measures(probs, context.evaluation, context.data),
        "best_accuracy": max(curve) if curve else None,
        "best_epoch": int(np.argmax(curve)) + 1 if curve else None,
    }
    return found


def choose_loss(context: RetrainingContext) -> dict[str, float]:
    """Try the run's loss and plain cross entropy on the corrected labels.

    What suits noisy labels can overfit clean ones. A tenth of the rows to train on is set aside,
    and agreement with their corrected labels counts as much as these are likely to be right.

    Returns:
        Loss to its agreement, the run's first.
    """
    data, recipe = context.data, context.recipe
    label, usable = (
        data.manifest.label,
        data.kept & context.scan.readable & ~context.evaluation.rows,
    )
    aside = a_tenth(label, usable, context.runtime.seed)
    weight = data.trust * aside
    found = {}
    for name in dict.fromkeys((recipe.loss.name, PLAIN)):
        loss = recipe.loss if name == recipe.loss.name else LossSettings(name)
        trial = replace(context, recipe=replace(recipe, loss=loss))
        said = train_rows(trial, label, data.kept & ~aside, f"trial of {name}", data.trust)
        right = np.nan_to_num(said.probs).argmax(axis=1) == label
        found[name] = round(float((weight * right).sum() / max(weight.sum(), 1e-12)), 4)
    return found
