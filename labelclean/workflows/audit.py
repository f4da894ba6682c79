"""A whole run: from a manifest to a run folder."""

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelclean.correction.decisions import left_out
from labelclean.correction.judging import Testimony
from labelclean.correction.result import Audit
from labelclean.data.manifest import Manifest
from labelclean.errors import DataError
from labelclean.evidence.neighbours import nearest
from labelclean.outputs.report_records import SHOWN_NEIGHBOURS, with_shown
from labelclean.recipe import Recipe, load_recipe
from labelclean.records.records import Records
from labelclean.records.store import records_table
from labelclean.runs.check import CONTENT
from labelclean.runs.folder import RunFolder, peak_memory
from labelclean.runs.model_folder import write_model
from labelclean.training.runtime import Runtime, start_runtime
from labelclean.workflows.conclude import Case, Run, conclude
from labelclean.workflows.from_probs import case_of_probs
from labelclean.workflows.inputs import Brought, Material, read_material
from labelclean.workflows.observe import Observation, Place, no_bar, no_word, observe, prepare

LOOKED_UP = 5000
LARGEST_EMBEDDING = 1 << 30  # bytes
MOST_CLASSES = 10_000


def audit(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    recipe: str | Path | Recipe | None = None,
    *,
    decisions: str | os.PathLike[str] | None = None,
    seed: int = 0,
    overwrite: bool = False,
) -> Run:
    """Audit a manifest into a run folder: what `labelclean audit` does.

    Args:
        path: The manifest: a table or a folder of images.
        out: The run folder; None: NAME-audit in the current folder.
        recipe: A shipped recipe's name, a .toml file, or settings; None: the defaults.
        decisions: decisions.jsonl of people who looked at these rows; they are believed.
        seed: Seed of every draw.
        overwrite: Replace the run in the folder.

    Raises:
        LabelCleanError: See the error's own words.
    """
    settings = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    folder = Path(out) if out is not None else default_folder(path)
    brought = Brought(decisions=None if decisions is None else Path(decisions))
    run = run_audit(Path(path), folder, settings, seed=seed, brought=brought, overwrite=overwrite)
    if run is None:
        raise RuntimeError("this process does not lead; call run_audit in a distributed job")
    return run


def default_folder(path: str | os.PathLike[str]) -> Path:
    """Give the run folder of a manifest: NAME-audit in the current folder."""
    return Path(f"{Path(path).stem or 'dataset'}-audit")


def run_audit(
    path: str | Path | Manifest,
    out: Path,
    recipe: Recipe,
    *,
    seed: int = 0,
    place: Place = Place(),
    brought: Brought = Brought(),
    resume: bool = False,
    overwrite: bool = False,
) -> Run | None:
    """Audit a manifest into a run folder.

    Args:
        path: The manifest: where it is, or already read.
        out: The run folder.
        recipe: Every setting.
        seed: Seed of every draw.
        place: Where to compute and keep things.
        brought: Features, probabilities, the truth, what people decided.
        resume: Go on with a run that did not end.
        overwrite: Replace what is in the folder.

    Returns:
        The finished run, or None in a process that does not lead.

    Raises:
        LabelCleanError: See the error's own words.
    """
    began = time.perf_counter()
    folder = RunFolder(out)
    folder.check(resume=resume, overwrite=overwrite)
    prepare(recipe)
    material = read_material(path, recipe.data, brought)
    manifest = material.trainable()
    _refuse_too_many_classes(manifest)
    runtime = start_runtime(
        place.device, threads=place.threads, seed=seed, precision=recipe.training.precision
    )
    folder = RunFolder(out, runtime.leads)
    settings = {"recipe": recipe.plain(), "input": manifest.digest, "seed": seed}
    settings |= material.digests()
    # Every process must have looked before the first one changes anything.
    runtime.wait()
    folder.claim(settings, resume=resume)
    runtime.wait()
    if not runtime.leads:
        place = replace(place, bar=no_bar, say=no_word)
    seen = None
    if material.pred_probs is None:
        passed = left_out(manifest, material.people)
        seen = observe(
            manifest, recipe, runtime, place=place, workspace=folder.work, left_out=passed
        )
    if not runtime.leads:
        runtime.wait()
        return None
    if seen is None:
        case = case_of_probs(material, recipe, seed=seed, say=place.say)
    else:
        case = _case(seen, material, runtime)
    run = conclude(case, folder, began)
    runtime.wait()
    return run


def _refuse_too_many_classes(manifest: Manifest) -> None:
    count = len(manifest.classes)
    if count > MOST_CLASSES:
        raise DataError(
            f"{manifest.source}, column {manifest.label_col!r} has {count} classes among "
            f"{len(manifest)} rows; an audit compares every class with every other, which takes "
            f"too much memory beyond {MOST_CLASSES}. Is it a column of names or numbers of single "
            "pictures? Name the label column with --label-col."
        )


def _case(seen: Observation, material: Material, runtime: Runtime) -> Case:
    """Collect what was observed."""
    records = records_table(seen.fitted.records, seen.rows, seen.manifest.sample_id[seen.rows])
    records = with_shown(records, _near(seen), _watched(seen))
    content = pa.array([line.tobytes() for line in seen.scan.digest[seen.rows]], pa.binary(32))
    return Case(
        material=material,
        testimony=replace(testify(seen), people=material.people),
        records=records.append_column(CONTENT, content),
        recipe=seen.recipe,
        facts=_facts(seen, runtime),
        timings=seen.timings,
        save_model=lambda folder, found: _save_model(seen, folder, found),
    )


def _save_model(seen: Observation, folder: Path, found: Audit) -> None:
    write_model(
        folder,
        seen.fitted,
        seen.recipe,
        seen.manifest,
        {
            "counts": found.counts(),
            "noise_rate": found.noise_rate,
            "corrected": False,
            "accuracy": {f"split {name}": share for name, share in _accuracy(seen).items()},
        },
    )


def testify(seen: Observation) -> Testimony:
    """Collect what the judge needs from an observation."""
    records, label = seen.fitted.records, seen.fitted.records.label
    rows = np.arange(len(label))
    signals: dict[str, NDArray[np.float64]] = {
        "p_given": records.probs[rows, label].astype(np.float64)
    }
    if records.margin is not None:
        signals["margin"] = records.margin[-1].astype(np.float64)
    watched = _watched(seen)
    if watched.attention is not None:
        signals["attention"] = watched.attention[-1].astype(np.float64)
    if watched.target is not None:
        signals["target_given"] = watched.target[rows, label].astype(np.float64)
    if seen.evidence is not None:
        signals["neighbour_agreement"] = seen.evidence.neighbour_agreement
    bad = np.flatnonzero(~seen.scan.readable)
    return Testimony(
        row=seen.rows,
        probs=records.probs if seen.evidence is None else seen.evidence.fused,
        transition=None if seen.evidence is None else seen.evidence.transition,
        in_sample=seen.evidence is None,
        signals=signals,
        unreadable={int(row): str(seen.scan.reason[row]) for row in bad},
        quality={} if seen.evidence is None else seen.evidence.quality,
        conflicts=_conflicts(seen),
        left_out=seen.left_out,
    )


def _near(seen: Observation) -> NDArray[np.int64] | None:
    """Give the nearest rows of each trained row; -1 where nobody asked, None: not known.

    Without frozen features only the rows that fit their label worst are looked up, in the trained
    network's own features, and only where these are small enough to be copied.
    """
    if seen.evidence is not None:
        return seen.rows[seen.evidence.near]
    records = seen.fitted.records
    if records.embedding is None or records.embedding.nbytes > LARGEST_EMBEDDING:
        return None
    own = records.probs[np.arange(len(records.label)), records.label]
    asked = np.argsort(own, kind="stable")[:LOOKED_UP]
    found, _ = nearest(records.embedding, SHOWN_NEIGHBOURS, asked)
    near = np.full((len(own), found.shape[1]), -1)
    near[asked] = seen.rows[found]
    return near


def _watched(seen: Observation) -> Records:
    """Give the records of the loss whose attention and targets count."""
    own = seen.fitted.records
    trained = seen.recipe.training.mode != "head" and own.attention is not None
    return own if seen.evidence is None or trained else seen.evidence.attention


def _conflicts(seen: Observation) -> NDArray[np.int64]:
    """Find rows whose very content also occurs under another label."""
    label = seen.manifest.label
    groups = [group for group in seen.scan.duplicates() if len(set(label[group].tolist())) > 1]
    return np.array(sorted(int(row) for group in groups for row in group), dtype=np.int64)


def _facts(seen: Observation, runtime: Runtime) -> dict[str, object]:
    fitted = seen.fitted
    backbone = fitted.backbone
    return {
        "recipe": seen.recipe.plain(),
        "seed": runtime.seed,
        "loss": {"name": seen.recipe.loss.name, "params": dict(seen.recipe.loss.params)},
        "backbone": None
        if backbone is None
        else {
            "name": backbone.name,
            "weights": backbone.weights,
            "image_size": backbone.spec.size,
        },
        "epochs": fitted.epochs,
        "early_stop": {
            "labels": seen.recipe.training.early_stop,
            "kept_epoch": None if fitted.best_epoch < 0 else fitted.best_epoch + 1,
        },
        "held_out_accuracy": _accuracy(seen),
        "peak_memory_bytes": peak_memory(),
        "machine": {
            "device": runtime.device.type,
            "processes": runtime.processes,
            "threads": runtime.threads,
        },
    }


def _accuracy(seen: Observation) -> dict[str, float]:
    """Give the share of held-out rows whose given label the model predicts, by split."""
    if seen.manifest.split is None or not len(seen.held_out):
        return {}
    right = seen.fitted.other_probs.argmax(axis=1) == seen.manifest.label[seen.held_out]
    split = seen.manifest.split[seen.held_out].astype(str)
    return {name: float(right[split == name].mean()) for name in np.unique(split).tolist()}
