"""Training again on corrected labels, measured before and after on rows nobody trained on."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from labelclean import __version__
from labelclean.atomic import folder_lock, one_writer
from labelclean.errors import ConfigError
from labelclean.evidence.features import CANDIDATE_LOSSES
from labelclean.models.saved import CONFIG, load_model
from labelclean.options import RunOptions, no_log, no_progress
from labelclean.outputs.run_json import RUN_SCHEMA, provenance
from labelclean.recipe import Recipe, change_recipe
from labelclean.runs.digests import RETRAIN
from labelclean.runs.folder import RunFolder
from labelclean.runs.model_folder import write_model
from labelclean.runs.reading import StoredRun, load_run
from labelclean.runs.relabelled import read_relabelled
from labelclean.training.runtime import leads_job, start_runtime
from labelclean.training.settings import LossSettings, TrainSettings
from labelclean.workflows.evaluation_split import choose_evaluation_split
from labelclean.workflows.observe import AUTO, look, prepare
from labelclean.workflows.predict import answers, spread
from labelclean.workflows.retraining_context import (
    RetrainingContext,
    choose_loss,
    measured,
    train_rows,
)


@dataclass(frozen=True, slots=True)
class Retrained:
    """A finished retraining.

    Args:
        folder: RUN/retrain.
        facts: What its run.json says.
    """

    folder: Path
    facts: Mapping[str, Any]


def retrain_run(
    run: Path,
    *,
    overrides: Sequence[str] = (),
    decisions: Path | None = None,
    truth_col: str | None = None,
    latest: Path | None = None,
    seed: int = 0,
    options: RunOptions = RunOptions(),
    overwrite: bool = False,
) -> Retrained | None:
    """Train on the corrected labels of a run into RUN/retrain.

    Args:
        run: The run folder.
        overrides: Changes of the run's recipe, "section.key=value".
        decisions: decisions.jsonl, which stands above what the run decided.
        truth_col: Column with the true labels, for the papers' measures.
        latest: Folder of a later round, whose labels count.
        seed: Seed of every draw.
        options: Where to compute and keep things.
        overwrite: Replace an earlier retraining.

    Returns:
        What was found, or None in a process that does not lead.

    Raises:
        LabelCleanError: See the error's own words.
    """
    needed = leads_job() and run.is_dir()
    lock = folder_lock(run)
    with one_writer(lock, "retrain", wait=options.queue, needed=needed):
        return _retrain(run, overrides, decisions, truth_col, latest, seed, options, overwrite)


def _retrain(
    run: Path,
    overrides: Sequence[str],
    decisions: Path | None,
    truth_col: str | None,
    latest: Path | None,
    seed: int,
    options: RunOptions,
    overwrite: bool,
) -> Retrained | None:
    began = time.perf_counter()
    stored = load_run(run)
    recipe = _settle(stored, overrides)
    folder = RunFolder(run / RETRAIN)
    if folder.complete or not (folder.folder / "model" / CONFIG).is_file():
        # A retraining that did not end is begun anew: nothing in it is worth a flag. One whose
        # model is left of a run that was replaced needs no question either.
        folder.check(resume=False, overwrite=overwrite or not folder.complete)
    data = read_relabelled(stored, decisions=decisions, truth_col=truth_col, latest=latest)
    runtime = start_runtime(
        options.device, threads=options.threads, seed=seed, precision=recipe.training.precision
    )
    if not runtime.leads:
        options = replace(options, progress=no_progress, log=no_log)
    folder = RunFolder(run / RETRAIN, runtime.leads)
    runtime.wait()
    folder.claim({"recipe": recipe.plain(), "seed": seed}, resume=False)
    runtime.wait()
    with options.progress("decode") as on_progress:
        scan = look(data.manifest, recipe.data, on_progress)
    evaluation = choose_evaluation_split(data, scan, seed, recipe.data)
    source = run.name if latest is None else f"{run.name}/{latest.name}"
    context = RetrainingContext(
        stored, data, scan, evaluation, recipe, runtime, options, folder.work, source
    )
    before = _before(context)
    trials = choose_loss(context) if _open_choice(stored, recipe, overrides) else {}
    name = max(trials, key=lambda name: trials[name], default=recipe.loss.name)
    if name != recipe.loss.name:
        context = replace(context, recipe=replace(recipe, loss=LossSettings(name)))
    after = train_rows(context, data.manifest.label, data.kept, "after", data.trust)
    facts: dict[str, Any] = {}
    if runtime.leads:
        facts = _facts(context, after.recipe, before, after.found)
        facts["loss_before"] = recipe.loss.name
        facts["loss_trials"] = trials
        facts["timings"] = {"total": round(time.perf_counter() - began, 4)}
        card = _card(context, before, after.found)
        write_model(folder.folder / "model", after.fitted, after.recipe, data.manifest, card)
        facts = folder.finish(facts)
    runtime.wait()
    return Retrained(folder.folder, facts) if runtime.leads else None


def _settle(run: StoredRun, overrides: Sequence[str]) -> Recipe:
    """Put the changes over the run's own recipe."""
    recipe = change_recipe(run.recipe, overrides)
    if recipe.training.mode != run.recipe.training.mode:
        # What suited the other mode does not suit this one.
        fresh = TrainSettings()
        open_again = {
            name: getattr(fresh, name)
            for name in ("epochs", "batch_size", "optimizer", "learning_rate", "weight_decay")
        } | {"schedule": None, "augment": None, "folds": 0}
        plain = replace(run.recipe, training=replace(run.recipe.training, **open_again))
        recipe = change_recipe(plain, overrides)
    if recipe.loss.name == AUTO:
        raise ConfigError(
            "retrain needs a loss by name, because planted flips choose only in an audit; leave "
            f"--loss out to train with the run's own ({run.recipe.loss.name})."
        )
    backbone = run.facts.get("backbone")
    if recipe.model.image_size is None and isinstance(backbone, dict):
        # The same size as the audit saw, whatever rows are left: its features are in the cache.
        recipe = replace(
            recipe, model=replace(recipe.model, image_size=int(backbone["image_size"]))
        )
    prepare(recipe)
    return recipe


def _open_choice(run: StoredRun, recipe: Recipe, overrides: Sequence[str]) -> bool:
    """Whether nobody named the loss, neither then, when planted flips chose it, nor now."""
    tried = run.facts.get("signal_quality") or {}
    named = any(text.strip().startswith("loss.") for text in overrides)
    return not named and recipe.training.mode == "head" and set(CANDIDATE_LOSSES) <= set(tried)


def _before(context: RetrainingContext) -> dict[str, Any]:
    """Measure the same training on the given labels."""
    recipe, stored = context.recipe, context.run.recipe
    same = (recipe.loss, recipe.training) == (stored.loss, stored.training)
    same = same and recipe.model.backbone == stored.model.backbone
    if same and recipe.training.mode != "head" and context.evaluation.on == "test split":
        # The audit's own model never saw these rows, and a whole network is dear to train again.
        rows = np.flatnonzero(context.scan.readable)
        saved = load_model(context.run.folder / "model")
        said, _ = answers(
            saved,
            context.data.manifest,
            context.scan,
            rows,
            recipe.data,
            context.runtime,
            options=context.options,
        )
        probs = spread(said, rows, len(context.data.given))
        trained = int((context.data.audited & context.scan.readable).sum())
        return measured(context, probs, [], trained)
    return train_rows(context, context.data.given, context.data.audited, "before").found


def _facts(
    context: RetrainingContext, recipe: Recipe, before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any]:
    data, evaluation = context.data, context.evaluation
    return {
        "schema_version": RUN_SCHEMA,
        "tool": f"labelclean {__version__}",
        "kind": "retrain",
        "input": context.run.facts["input"],
        "labels_from": context.labels_from,
        "classes": list(data.manifest.classes),
        "columns": context.run.facts["columns"],
        "recipe": recipe.plain(),
        "seed": context.runtime.seed,
        "loss": {"name": recipe.loss.name, "params": dict(recipe.loss.params)},
        "counts": {
            "changed": int((data.kept & (data.manifest.label != data.given)).sum()),
            "left_out": int((data.audited & ~data.kept).sum()),
            "decided": data.decided,
        },
        "evaluation": {
            "on": evaluation.on,
            "rows": int(evaluation.rows.sum()),
            "labels": evaluation.labels,
            "repeated_rows_left_out": evaluation.repeated,
        },
        "before": dict(before),
        "after": dict(after),
        "warnings": _warnings(context, after),
        **provenance(),
    }


def _warnings(context: RetrainingContext, after: Mapping[str, Any]) -> list[str]:
    said = context.evaluation.warnings()
    if after["best_accuracy"] is None:
        said.append(
            "Only the final accuracy is reported: outside head mode the rows are not looked at "
            "after every epoch."
        )
    return said


def _card(
    context: RetrainingContext, before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, object]:
    where = f"{context.evaluation.on}, {context.evaluation.labels} labels"
    return {
        "counts": context.run.facts["counts"],
        "noise_rate": context.run.facts.get("noise_rate"),
        "corrected": True,
        "decided": context.data.decided,
        "accuracy": {
            f"{where}, trained on the given labels": before["accuracy"],
            f"{where}, this model": after["accuracy"],
        },
        "warnings": _warnings(context, after),
    }
