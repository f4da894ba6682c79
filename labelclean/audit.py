"""A whole run: from a manifest to a run folder."""

import platform
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from labelclean import __version__
from labelclean.atomic import atomic_path
from labelclean.pipeline import (
    Observation,
    Place,
    no_bar,
    no_word,
    observe,
    open_manifest,
    prepare,
)
from labelclean.recipe import Recipe
from labelclean.records.store import records_table
from labelclean.training.runtime import Runtime, start_runtime
from labelclean.workspace import RunFolder, peak_memory

SCHEMA = 1
PACKAGES = ("torch", "timm", "numpy", "pyarrow", "pillow")


def run_audit(
    path: str | Path,
    out: Path,
    recipe: Recipe,
    *,
    seed: int = 0,
    place: Place = Place(),  # noqa: B008 (frozen)
    resume: bool = False,
    overwrite: bool = False,
) -> Mapping[str, object] | None:
    """Audit a manifest into a run folder.

    Args:
        path: The manifest.
        out: The run folder.
        recipe: Every setting.
        seed: Seed of every draw.
        place: Where to compute and keep things.
        resume: Go on with a run that did not end.
        overwrite: Replace what is in the folder.

    Returns:
        What run.json says, or None in a process that does not lead.

    Raises:
        LabelCleanError: See the error's own words.
    """
    began = time.perf_counter()
    folder = RunFolder(out)
    folder.check(resume=resume, overwrite=overwrite)
    prepare(recipe)
    manifest = open_manifest(path, recipe.data)
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
    started = time.perf_counter()
    _write_parquet(out / "records.parquet", _records(seen))
    _write_parquet(out / "issues.parquet", _issues(seen))
    timings = seen.timings | {"write": time.perf_counter() - started}
    timings["total"] = time.perf_counter() - began
    facts = _facts(seen, runtime, timings)
    folder.finish(facts)
    runtime.wait()
    return facts


def _records(seen: Observation) -> pa.Table:
    return records_table(seen.fitted.records, seen.rows, seen.manifest.sample_id[seen.rows])


def _issues(seen: Observation) -> pa.Table:
    """Rank by 1 - p(given label); what judges the ranking fills the columns that are null here."""
    manifest, records = seen.manifest, seen.fitted.records
    p_given = records.probs[np.arange(len(records.label)), records.label]
    order = np.argsort(p_given, kind="stable")
    bad = np.flatnonzero(~seen.scan.readable)
    rows = np.concatenate([seen.rows[order], bad])
    kind = pa.string() if isinstance(manifest.classes[0], str) else pa.int64()

    def last(signal: np.ndarray | None) -> pa.Array:
        values = None if signal is None else signal[-1][order]
        return _padded(values, len(order), len(bad))

    given = p_given[order]
    empty = pa.nulls(len(rows), pa.float64())
    return pa.table(
        {
            "rank": pa.array(np.arange(1, len(rows) + 1)),
            "row": pa.array(rows),
            "sample_id": pa.array([str(text) for text in manifest.sample_id[rows]]),
            "path": pa.array([str(text) for text in manifest.path[rows]]),
            "label_given": pa.array(manifest.label_values(manifest.label[rows]), kind),
            "label_suggested": pa.nulls(len(rows), kind),
            "action": pa.array([None] * len(order) + ["unreadable"] * len(bad), pa.string()),
            "p_error": empty,
            "suspicion": _padded(1 - given, len(order), len(bad)),
            "p_given": _padded(given, len(order), len(bad)),
            "p_suggested": empty,
            "attention": last(records.attention),
            "target_given": last(records.target_given),
            "margin": last(records.margin),
            "neighbour_agreement": empty,
            "reason": pa.array([None] * len(order) + seen.scan.reason[bad].tolist(), pa.string()),
        }
    )


def _padded(values: np.ndarray | None, count: int, bad: int) -> pa.Array:
    if values is None:
        return pa.nulls(count + bad, pa.float64())
    return pa.concat_arrays([pa.array(values.astype(np.float64)), pa.nulls(bad, pa.float64())])


def _write_parquet(path: Path, table: pa.Table) -> None:
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary)


def _facts(seen: Observation, runtime: Runtime, timings: dict[str, float]) -> dict[str, object]:
    manifest, fitted = seen.manifest, seen.fitted
    backbone = fitted.backbone
    return {
        "schema": SCHEMA,
        "recipe": seen.recipe.plain(),
        "versions": {"labelclean": __version__, **{name: _version(name) for name in PACKAGES}},
        "seed": runtime.seed,
        "input": manifest.source.name,
        "input_digest": manifest.digest,
        "classes": list(manifest.classes),
        "counts": {
            "rows": len(manifest),
            "trained": len(seen.rows),
            "held_out": len(seen.held_out),
            "unreadable": int((~seen.scan.readable).sum()),
        },
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
        "noise_rate": None,
        "noise_rate_interval": None,
        "timings": {name: round(seconds, 4) for name, seconds in timings.items()},
        "peak_memory_bytes": peak_memory(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "platform": platform.platform(),
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


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
