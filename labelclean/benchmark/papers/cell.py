"""One cell: train, judge, and measure all the papers measure."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelclean.benchmark.metrics import auroc, average_precision
from labelclean.benchmark.papers.against import finite_or_none, measure_rival
from labelclean.benchmark.papers.grid import Cell
from labelclean.benchmark.papers.study import Study
from labelclean.correction.actions import KEEP
from labelclean.correction.judging import judge_evidence
from labelclean.correction.result import Audit
from labelclean.data.manifest import Manifest
from labelclean.evidence.scorers import SCORERS, available
from labelclean.options import RunOptions, peak_memory
from labelclean.outputs.truth import UNKNOWN, truth_scores
from labelclean.recipe import Recipe
from labelclean.records.records import Records
from labelclean.training.runtime import Runtime
from labelclean.workflows.collect import collect_evidence
from labelclean.workflows.evaluation_split import evaluation_accuracy, measures
from labelclean.workflows.observe import Observation, observe
from labelclean.workflows.predict import spread

TRAINING_STAGES = ("early", "middle", "late")


@dataclass(frozen=True, slots=True)
class CellFinding:
    """What a cell found.

    Args:
        measures: Name to number; None where a thing cannot be measured.
        curves: Name to one number per epoch.
        samples: One line per row that was trained on; `true` is null where it is not known.
    """

    measures: dict[str, float | None]
    curves: dict[str, list[float | None]]
    samples: pa.Table


@dataclass(frozen=True, slots=True)
class _Trained:
    """A training and the test accuracy after each of its epochs."""

    seen: Observation
    curve: list[float]
    seconds: float
    cpu_seconds: float


def run_cell(
    study: Study,
    cell: Cell,
    recipe: Recipe,
    runtime: Runtime,
    options: RunOptions,
    against: Sequence[str] = (),
) -> CellFinding:
    """Train on a cell's labels and measure.

    Args:
        study: What all cells share.
        cell: The loss, the noise and the seed.
        recipe: The settings; the cell's loss is put over them.
        runtime: Where to compute; its seed is replaced by the cell's.
        options: Cache, progress and messages.
        against: Rivals that look at the same features or margins.
    """
    manifest = study.noisy(cell)
    trained = _train(
        study, manifest, cell.recipe(recipe), replace(runtime, seed=cell.seed), options
    )
    records, rows = trained.seen.fitted.records, trained.seen.rows
    found = judge_evidence(manifest, collect_evidence(trained.seen), {}, policy=recipe.correction)
    known = study.known[rows]
    true = study.truth.label[rows]
    wrong = (records.label != true)[known]
    corrected = paper_labels(records)
    signals = {name: SCORERS[name](records) for name in available(records)}
    values: dict[str, float | None] = {
        "rows_trained": len(rows),
        "rows_measured": int(study.evaluation.rows.sum()),
        **_accuracies(study, manifest, trained),
        **_judged(found, study),
        "label_accuracy_argmax": float((corrected == true)[known].mean()),
    }
    for name, suspicion in signals.items():
        values[f"ap_{name}"] = finite_or_none(average_precision(wrong, suspicion[known]))
        values[f"auroc_{name}"] = finite_or_none(auroc(wrong, suspicion[known]))
    for name in against:
        values |= measure_rival(
            name, trained.seen, known, study.truth.label[rows][known], cell.seed
        )
    curves = _curves(records, known, wrong)
    curves["test_accuracy"] = list(trained.curve)
    if "attention_auroc" in curves:
        for stage, epoch in stage_epochs(len(curves["attention_auroc"])).items():
            values[f"auroc_attention_{stage}"] = curves["attention_auroc"][epoch]
    values |= {
        "seconds": trained.seconds,
        "cpu_seconds": trained.cpu_seconds,
        "memory_bytes": peak_memory(),
    }
    return CellFinding(values, curves, _samples(study, trained.seen, found, corrected, signals))


def retrain_cell(
    study: Study,
    cell: Cell,
    samples: pa.Table,
    recipe: Recipe,
    runtime: Runtime,
    options: RunOptions,
) -> dict[str, float | None]:
    """Train anew on the labels a finished cell corrected, with nothing else changed.

    Args:
        study: What all cells share.
        cell: The finished cell.
        samples: What it said about its rows.
        recipe: The settings, as the cell had them.
        runtime: Where to compute; its seed is replaced by the cell's.
        options: Cache, progress and messages.
    """
    manifest = study.noisy(cell)
    label = manifest.label.copy()
    label[samples["row"].to_numpy()] = samples["corrected"].to_numpy()
    relabelled = study.with_label(label)
    runtime = replace(runtime, seed=cell.seed)
    trained = _train(study, relabelled, cell.recipe(recipe), runtime, options)
    after = _accuracies(study, relabelled, trained)
    return {
        "retrain_best_accuracy": after["best_accuracy"],
        "retrain_final_accuracy": after["final_accuracy"],
        "retrain_seconds": trained.seconds,
    }


def paper_labels(records: Records) -> NDArray[np.int64]:
    """(n,) the papers' corrected labels: the most likely class.

    By the soft target where the loss keeps one (NAL), by the final model elsewhere (GR).
    """
    answers = records.probs if records.target is None else records.target
    label: NDArray[np.int64] = answers.argmax(axis=1).astype(np.int64)
    return label


def stage_epochs(epochs: int) -> dict[str, int]:
    """Give the last epoch of each third of a training, 0-based."""
    return {stage: -(-epochs * (at + 1) // 3) - 1 for at, stage in enumerate(TRAINING_STAGES)}


def _train(
    study: Study, manifest: Manifest, recipe: Recipe, runtime: Runtime, options: RunOptions
) -> _Trained:
    others = np.flatnonzero(study.readable & ~study.train)
    curve: list[float] = []

    def watch(said: NDArray[np.float32]) -> None:
        curve.append(evaluation_accuracy(spread(said, others, len(manifest)), study.evaluation))

    began, spent = time.perf_counter(), time.process_time()
    seen = observe(manifest, recipe, runtime, options=options, watch=watch)
    return _Trained(seen, curve, time.perf_counter() - began, time.process_time() - spent)


def _accuracies(study: Study, manifest: Manifest, trained: _Trained) -> dict[str, float | None]:
    seen, curve = trained.seen, trained.curve
    said = np.concatenate([seen.fitted.records.probs, seen.fitted.other_probs])
    rows = np.concatenate([seen.rows, seen.held_out])
    found = measures(spread(said, rows, len(manifest)), study.evaluation, study.labelled(manifest))
    final = found.pop("accuracy")
    best = max(curve)
    return {
        "best_accuracy": best,
        "best_epoch": int(np.argmax(curve)) + 1,
        "final_accuracy": final,
        "best_minus_final": None if final is None else best - final,
        **found,
    }


def _judged(found: Audit, study: Study) -> dict[str, float | None]:
    """Say how good the judge was on what the model said."""
    scores = truth_scores(found, study.truth)
    kept = {
        "true_noise": "noise_rate",
        "noise_rate_error": "noise_rate_error",
        "ap_p_error": "ap",
        "auroc_p_error": "auroc",
        "f1": "f1",
        "best_f1": "best_f1",
        "label_accuracy_given": "label_accuracy_given",
        "label_accuracy_corrected": "label_accuracy_corrected",
        "label_accuracy_flagged": "label_accuracy_flagged",
    }
    numbers: dict[str, float | None] = {}
    for name, source in kept.items():
        value = scores[source]
        numbers[name] = float(value) if isinstance(value, int | float) else None
    return {**numbers, "noise_estimate": found.noise_rate}


def _curves(
    records: Records, known: NDArray[np.bool_], wrong: NDArray[np.bool_]
) -> dict[str, list[float | None]]:
    """How training went on: what was fitted of the wrong and of the right labels, and tau."""
    curves: dict[str, list[float | None]] = {}
    if records.predicted is not None:
        fits = (records.predicted == records.label)[:, known]
        for name, part in (("noisy_fit", wrong), ("clean_fit", ~wrong)):
            if part.any():
                curves[name] = [float(share) for share in fits[:, part].mean(axis=1)]
    if records.attention is not None:
        tau = records.attention[:, known]
        curves["attention_auroc"] = [finite_or_none(auroc(wrong, 1 - line)) for line in tau]
    return curves


def _samples(
    study: Study,
    seen: Observation,
    found: Audit,
    corrected: NDArray[np.int64],
    signals: dict[str, NDArray[np.float64]],
) -> pa.Table:
    records, rows = seen.fitted.records, seen.rows
    position = np.full(len(study.manifest), -1)
    position[found.row] = np.arange(len(found.row))
    at, true = position[rows], study.truth.label[rows]
    columns: dict[str, object] = {
        "row": rows,
        "given": records.label,
        "true": pa.array(true, mask=true == UNKNOWN),
        "corrected": corrected,
        "suggested": found.suggested[at],
        "flagged": found.action[at] != KEEP,
        "p_error": found.p_error[at],
        **{f"signal_{name}": values for name, values in signals.items()},
    }
    if records.attention is not None:
        for stage, epoch in stage_epochs(len(records.attention)).items():
            columns[f"attention_{stage}"] = records.attention[epoch]
    return pa.table(columns)
