"""A whole run: from a manifest to a run folder."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelclean.atomic import write_bytes
from labelclean.data.images import ImageLimits
from labelclean.data.manifest import Manifest
from labelclean.data.parquet import encode_parquet, parquet_metadata, relative_path
from labelclean.data.sources import open_source
from labelclean.judging import Testimony, judge_testimony
from labelclean.model_folder import write_model
from labelclean.outputs.report import Load
from labelclean.outputs.run_folder import write_results
from labelclean.outputs.run_json import run_facts
from labelclean.pipeline import Observation, Place, no_bar, no_word, observe, open_manifest, prepare
from labelclean.recipe import Recipe, load_recipe
from labelclean.records.store import records_table
from labelclean.result import Audit
from labelclean.testimony_store import testimony_columns
from labelclean.training.runtime import Runtime, start_runtime
from labelclean.workspace import RunFolder, peak_memory


@dataclass(frozen=True, slots=True)
class Run:
    """A finished audit.

    Args:
        folder: The run folder.
        audit: What was found.
        facts: What run.json says.
    """

    folder: Path
    audit: Audit
    facts: Mapping[str, object]


def audit(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    recipe: str | Path | Recipe | None = None,
    *,
    seed: int = 0,
    overwrite: bool = False,
) -> Run:
    """Audit a manifest into a run folder: what `labelclean audit` does.

    Args:
        path: The manifest: a table or a folder of images.
        out: The run folder; None: NAME-audit in the current folder.
        recipe: A shipped recipe's name, a .toml file, or settings; None: the defaults.
        seed: Seed of every draw.
        overwrite: Replace the run in the folder.

    Raises:
        LabelCleanError: See the error's own words.
    """
    settings = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    folder = Path(out) if out is not None else default_folder(path)
    run = run_audit(Path(path), folder, settings, seed=seed, overwrite=overwrite)
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
    place: Place = Place(),  # noqa: B008 (frozen)
    resume: bool = False,
    overwrite: bool = False,
) -> Run | None:
    """Audit a manifest into a run folder.

    Args:
        path: The manifest, or where it is.
        out: The run folder.
        recipe: Every setting.
        seed: Seed of every draw.
        place: Where to compute and keep things.
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
    manifest = path if isinstance(path, Manifest) else open_manifest(path, recipe.data)
    runtime = start_runtime(
        place.device, threads=place.threads, seed=seed, precision=recipe.training.precision
    )
    folder = RunFolder(out, runtime.leads)
    settings = {"recipe": recipe.plain(), "input": manifest.digest, "seed": seed}
    # Every process must have looked before the first one changes anything.
    runtime.wait()
    folder.claim(settings, resume=resume)
    runtime.wait()
    if not runtime.leads:
        place = replace(place, bar=no_bar, say=no_word)
    seen = observe(manifest, recipe, runtime, place=place, workspace=folder.work)
    if not runtime.leads:
        runtime.wait()
        return None
    run = _conclude(seen, folder, runtime, began)
    runtime.wait()
    return run


def _conclude(seen: Observation, folder: RunFolder, runtime: Runtime, began: float) -> Run:
    """Judge what was seen and write the run folder, run.json last."""
    started = time.perf_counter()
    testimony = testify(seen)
    found = judge_testimony(
        seen.manifest, testimony, _facts(seen, runtime), policy=seen.recipe.correction
    )
    judged = time.perf_counter()
    _write_records(seen, testimony, folder.folder)
    write_results(found, folder.folder, load=picture_loader(seen.manifest, seen.recipe))
    write_model(
        folder.folder / "model",
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
    ended = time.perf_counter()
    timings = dict(seen.timings)
    timings["score"] = timings.get("score", 0.0) + judged - started
    timings |= {"write": ended - judged, "total": ended - began}
    rounded = {name: round(seconds, 4) for name, seconds in timings.items()}
    found = replace(found, facts={**found.facts, "timings": rounded})
    facts = run_facts(found)
    source = relative_path(seen.manifest.source, folder.folder)
    facts["input"] = {**facts["input"], "path": source}  # type: ignore[dict-item]
    folder.finish(facts)
    return Run(folder.folder, found, facts)


def testify(seen: Observation) -> Testimony:
    """Collect what the judge needs from an observation."""
    records, label = seen.fitted.records, seen.fitted.records.label
    rows = np.arange(len(label))
    signals: dict[str, NDArray[np.float64]] = {
        "p_given": records.probs[rows, label].astype(np.float64)
    }
    if records.margin is not None:
        signals["margin"] = records.margin[-1].astype(np.float64)
    watched = records if seen.evidence is None else seen.evidence.attention
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
        signals=signals,
        unreadable={int(row): str(seen.scan.reason[row]) for row in bad},
        quality={} if seen.evidence is None else seen.evidence.quality,
        conflicts=_conflicts(seen),
    )


def _conflicts(seen: Observation) -> NDArray[np.int64]:
    """Find rows whose very content also occurs under another label."""
    label = seen.manifest.label
    groups = [group for group in seen.scan.duplicates() if len(set(label[group].tolist())) > 1]
    return np.array(sorted(int(row) for group in groups for row in group), dtype=np.int64)


def picture_loader(manifest: Manifest, recipe: Recipe) -> Load | None:
    """Give a function that reads a row's pixels; None where the samples are no pictures."""
    if not manifest.has_images:
        return None
    source = open_source(manifest, ImageLimits(recipe.data.max_bytes, recipe.data.max_pixels))
    return lambda row: source.load(row)[0]


def _write_records(seen: Observation, testimony: Testimony, folder: Path) -> None:
    table = records_table(seen.fitted.records, seen.rows, seen.manifest.sample_id[seen.rows])
    columns, metadata = testimony_columns(testimony)
    for name, column in columns.items():
        table = table.append_column(name, column)
    path = folder / "records.parquet"
    own = parquet_metadata(seen.manifest, path, input_digest=seen.manifest.digest)
    write_bytes(path, encode_parquet(table, {**own, **metadata}))


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
