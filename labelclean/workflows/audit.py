"""`labelclean audit`: from a manifest to a run folder, one step after the other."""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

from labelclean.atomic import folder_lock, one_writer
from labelclean.correction.answers import Heard
from labelclean.correction.decisions import left_out
from labelclean.correction.people import judge_with_decisions
from labelclean.data.doubts import label_doubts
from labelclean.data.manifest import Manifest
from labelclean.data.many_files import plain_name
from labelclean.data.places import Place, as_place
from labelclean.errors import ConfigError, DataError
from labelclean.options import IMPORT, Clock, Log, OpenProgress, RunOptions, no_log, no_progress
from labelclean.outputs.run_json import run_facts
from labelclean.recipe import Recipe
from labelclean.runs.again import earlier_answers
from labelclean.runs.check import require_own_evidence
from labelclean.runs.evidence_store import write_records
from labelclean.runs.folder import RunFolder
from labelclean.runs.model_folder import write_model
from labelclean.strategies import PLAIN_STRATEGY
from labelclean.training.parts import PartStore
from labelclean.training.runtime import leads_job, start_runtime
from labelclean.workflows.collect import Collected, collect, model_facts
from labelclean.workflows.engines import LOCAL, WORKERS
from labelclean.workflows.from_probs import collect_probs
from labelclean.workflows.inputs import AuditInputs, SideInputs, read_audit_inputs
from labelclean.workflows.observe import Observation, observe, prepare
from labelclean.workflows.part_plan import plan_parts
from labelclean.workflows.write import Run, input_facts, write_judged

MOST_CLASSES = 10_000
ALWAYS_TIMED = ("decode", "features", "train", "score")
"""Phases that run.json names even where an audit does without them."""


def default_folder(path: str | os.PathLike[str]) -> Path:
    """Give the run folder of a manifest: NAME-audit in the current folder."""
    return Path(f"{plain_name(as_place(os.fspath(path)))}-audit")


def audit_lock(out: Path, options: RunOptions) -> AbstractContextManager[None]:
    """Keep others from writing into a run folder; for an audit and whatever follows it.

    Raises:
        OutputError: Another process writes there.
    """
    # One lock for the job; a file is refused with better words by whoever looks at the folder.
    needed = leads_job() and not out.is_file()
    return one_writer(folder_lock(out), "audit", wait=options.queue, needed=needed)


def run_audit(
    path: str | Place | Manifest,
    out: Path,
    recipe: Recipe,
    *,
    seed: int = 0,
    options: RunOptions = RunOptions(),
    side: SideInputs = SideInputs(),
    resume: bool = False,
    overwrite: bool = False,
) -> Run | None:
    """Audit a manifest into a run folder.

    Args:
        path: The manifest: where it is, or already read.
        out: The run folder.
        recipe: Every setting.
        seed: Seed of every draw.
        options: Where to compute and keep things.
        side: Features, probabilities, the truth, what people decided.
        resume: Go on with a run that did not end.
        overwrite: Replace what is in the folder.

    Returns:
        The finished run, or None in a process that does not lead.

    Raises:
        LabelCleanError: See the error's own words.
    """
    with audit_lock(out, options):
        return _run_audit(path, out, recipe, seed, options, side, resume, overwrite)


def _run_audit(
    path: str | Place | Manifest,
    out: Path,
    recipe: Recipe,
    seed: int,
    options: RunOptions,
    side: SideInputs,
    resume: bool,
    overwrite: bool,
) -> Run | None:
    clock = options.clock or Clock()
    options = replace(options, progress=clock.timed(options.progress))
    # Inputs: everything that can be refused is refused before anything dear is done.
    folder = RunFolder(out)
    folder.check(resume=resume, overwrite=overwrite)
    with clock.phase(IMPORT):  # that of timm, mostly
        prepare(recipe)
    _refuse_idle_strategy(recipe, side)
    with clock.phase("read"):
        inputs = read_audit_inputs(path, recipe.data, side)
        heard = _listen(inputs, side, recipe, options)
        samples = inputs.trainable()
        _refuse_too_many_classes(samples)
    runtime = start_runtime(
        options.device, threads=options.threads, seed=seed, precision=recipe.training.precision
    )
    folder = RunFolder(out, runtime.leads)
    settings = {"recipe": recipe.plain(), "input": samples.digest, "seed": seed}
    # Called when nothing can be refused any more: a start that fails leaves what was there.
    claim = partial(_claim, folder, settings | inputs.digests(), side.held, resume=resume)
    runtime.wait()  # every process must have looked before the first one changes anything
    if not runtime.leads:
        options = replace(options, progress=clock.timed(no_progress), log=no_log)
    if options.engine is None and resume and PartStore.stored_plan(folder.work) is not None:
        options = replace(options, engine=LOCAL)
    if options.engine == WORKERS:
        claim()
        _tell_workers(plan_parts(samples, recipe, runtime, folder.work), options.log)
        return None
    # Observe: what training records about every row; with probabilities nothing is trained.
    observed = None
    if inputs.pred_probs is None:
        observed = observe(
            samples,
            recipe,
            runtime,
            options=options,
            workspace=folder.work,
            claim=claim,
            left_out=left_out(samples, inputs.people),
        )
    if not runtime.leads:
        runtime.wait()
        return None
    if observed is None:
        found = collect_probs(inputs, recipe, seed=seed, log=options.log)
        claim()
    else:
        with clock.phase("score"):
            found = collect(observed, inputs, runtime)
    run = _conclude(inputs, found, observed, folder, heard, clock, options.progress)
    runtime.wait()
    return run


def _tell_workers(store: PartStore, log: Log) -> None:
    """Say how the shards get done."""
    run, parts, left = store.folder.parent.parent, len(store.plan.parts), len(store.missing())
    log(f"{parts} shards are planned, {parts - left} of them done.")
    log(f"Start workers, here or elsewhere: labelclean worker {run} --shards 1/8 (to 8/8).")
    log("Then end the audit with the same command, --resume instead of --engine workers.")


def _refuse_idle_strategy(recipe: Recipe, side: SideInputs) -> None:
    name = recipe.strategy.name
    if side.pred_probs is not None and name != PLAIN_STRATEGY:
        raise ConfigError(
            f"strategy {name!r} says how a network is trained, and with --pred-probs nothing is; "
            "leave out --strategy, or --pred-probs to train here."
        )


def _listen(inputs: AuditInputs, side: SideInputs, recipe: Recipe, options: RunOptions) -> Heard:
    """Say what looks odd, and take up what an earlier run learned from the same people."""
    for doubt in label_doubts(inputs.manifest):
        options.log(f"Note: {doubt}")
    return Heard(earlier=earlier_answers(side.decisions, inputs.manifest, options.log))


def _claim(
    folder: RunFolder, settings: Mapping[str, object], held: Path | None, *, resume: bool
) -> None:
    folder.claim(settings, resume=resume)
    folder.keep_input(held)


def _conclude(
    inputs: AuditInputs,
    found: Collected,
    observed: Observation | None,
    folder: RunFolder,
    heard: Heard,
    clock: Clock,
    progress: OpenProgress,
) -> Run:
    """Judge, put people's decisions over it, write, and check; run.json comes last."""
    recipe, manifest = found.recipe, inputs.manifest
    with progress("judge"):
        result = judge_with_decisions(
            manifest, found.evidence, found.facts, recipe.correction, heard
        )
    with progress("check"):
        require_own_evidence(found.records, manifest, inputs.trainable(), recipe.data)
    with progress("write"):
        write_records(folder.folder, found.records, found.evidence, manifest)
        result = write_judged(result, folder.folder, recipe.data, inputs.truth, progress)
        if observed is not None:
            about = model_facts(observed, result)
            write_model(folder.folder / "model", observed.fitted, recipe, observed.manifest, about)
    timings = dict.fromkeys(ALWAYS_TIMED, 0.0) | clock.timings()
    result = replace(result, facts={**result.facts, "timings": timings})
    facts = run_facts(result)
    facts["input"] = {**input_facts(manifest, folder.folder), **inputs.digests()}
    if found.evidence.people:
        facts["decisions"] = len(found.evidence.people)
    return Run(folder.folder, result, folder.finish(facts))


def _refuse_too_many_classes(manifest: Manifest) -> None:
    count = len(manifest.classes)
    if count > MOST_CLASSES:
        raise DataError(
            f"{manifest.source}, column {manifest.label_col!r} has {count} classes among "
            f"{len(manifest)} rows; an audit compares every class with every other, which takes "
            f"too much memory beyond {MOST_CLASSES}. Is it a column of names or numbers of single "
            "pictures? Name the label column with --label-col."
        )
