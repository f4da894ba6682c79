"""The end of every audit: judge, write the run folder, say what was found."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from labelclean.correction.judging import Testimony
from labelclean.correction.result import Audit
from labelclean.correction.settling import settle
from labelclean.data.images import ImageLimits
from labelclean.data.manifest import Manifest
from labelclean.data.parquet import parquet_metadata, relative_path, write_parquet
from labelclean.data.settings import DataSettings
from labelclean.data.sources import open_source
from labelclean.outputs.report_pictures import SIDE, Load
from labelclean.outputs.run_folder import RECORDS, write_results
from labelclean.outputs.run_json import run_facts
from labelclean.outputs.truth import Truth, truth_scores, write_truth
from labelclean.recipe import Recipe
from labelclean.runs.check import require_every_row, require_own_evidence
from labelclean.runs.evidence_store import testimony_columns
from labelclean.runs.folder import RunFolder
from labelclean.workflows.inputs import Material


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


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that was observed, before anything is judged.

    Args:
        material: What was audited.
        testimony: What the judge needs.
        records: One line per audited row: what else is worth keeping.
        recipe: Every setting.
        facts: Plain data for run.json.
        timings: Seconds spent so far, by phase.
        save_model: Writes the trained model into a folder; None: there is none.
    """

    material: Material
    testimony: Testimony
    records: pa.Table
    recipe: Recipe
    facts: Mapping[str, object]
    timings: Mapping[str, float]
    save_model: Callable[[Path, Audit], None] | None = None


def conclude(case: Case, folder: RunFolder, began: float) -> Run:
    """Judge a case and write the run folder, run.json last.

    Args:
        case: What was observed.
        folder: Where to write.
        began: When the run began, on the performance counter.
    """
    started = time.perf_counter()
    manifest, truth = case.material.manifest, case.material.truth
    found = settle(manifest, case.testimony, case.facts, case.recipe.correction)
    judged = time.perf_counter()
    require_own_evidence(case.records, manifest, case.material.trainable(), case.recipe.data)
    _write_records(case, folder.folder)
    found = write_judged(found, folder.folder, case.recipe.data, truth)
    if case.save_model is not None:
        case.save_model(folder.folder / "model", found)
    ended = time.perf_counter()
    timings = dict(case.timings)
    timings["score"] = timings.get("score", 0.0) + judged - started
    timings |= {"write": ended - judged, "total": ended - began}
    rounded = {name: round(seconds, 4) for name, seconds in timings.items()}
    found = replace(found, facts={**found.facts, "timings": rounded})
    facts = run_facts(found)
    facts["input"] = {**_place(manifest, folder.folder), **case.material.digests()}
    if case.testimony.people:
        facts["decisions"] = len(case.testimony.people)
    folder.finish(facts)
    return Run(folder.folder, found, facts)


def write_judged(found: Audit, folder: Path, settings: DataSettings, truth: Truth | None) -> Audit:
    """Write everything that follows from a judgement, but not run.json.

    Raises:
        OutputError: A row of the input would be missing, or stand twice.

    Returns:
        The audit, with the scores against the truth among its facts, where that is known.
    """
    require_every_row(found, settings.audit_split)
    if truth is not None:
        write_truth(found, truth, folder)
        found = replace(found, facts={**found.facts, "truth": truth_scores(found, truth)})
    load = picture_loader(found.manifest, settings, SIDE)
    write_results(found, folder, load=load, truth=truth)
    return found


def picture_loader(
    manifest: Manifest, settings: DataSettings, min_side: int | None = None
) -> Load | None:
    """Give a function that reads a row's pixels; None where the samples are no pictures.

    Args:
        manifest: The samples.
        settings: Limits of what is read.
        min_side: Shorter side that is enough; None: all pixels.
    """
    if not manifest.has_images:
        return None
    source = open_source(manifest, ImageLimits(settings.max_bytes, settings.max_pixels))
    return lambda row: source.load(row, min_side)[0]


def _place(manifest: Manifest, folder: Path) -> dict[str, object]:
    """Say what was audited and where it is, seen from the run folder."""
    root = manifest.image_root
    return {
        "name": manifest.source.name,
        "digest": manifest.digest,
        "rows": len(manifest),
        "path": relative_path(manifest.source, folder),
        "image_root": None if root is None else relative_path(root, folder),
    }


def _write_records(case: Case, folder: Path) -> None:
    table, manifest = case.records, case.material.manifest
    columns, metadata = testimony_columns(case.testimony)
    for name, column in columns.items():
        table = table.append_column(name, column)
    path = folder / RECORDS
    own = parquet_metadata(manifest, path, input_digest=manifest.digest)
    write_parquet(path, table, {**own, **metadata})
