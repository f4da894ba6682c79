"""Judge a finished run again from its records, with what people decided since; no training."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from labelclean.atomic import folder_lock, one_writer
from labelclean.correction.people import judge_with_decisions
from labelclean.correction.policy import Policy
from labelclean.data.settings import DataSettings
from labelclean.errors import DataError
from labelclean.evidence.value import Evidence
from labelclean.options import Log
from labelclean.outputs.run_folder import RECORDS
from labelclean.outputs.run_json import run_facts
from labelclean.outputs.truth import read_truth
from labelclean.runs.decisions_file import read_decisions
from labelclean.runs.evidence_store import read_evidence
from labelclean.runs.folder import RUN, RunFolder
from labelclean.runs.issues import read_run_table, require_rows
from labelclean.runs.reading import OpenedRun, open_audited
from labelclean.workflows.write import Run, write_judged

JUDGED = (
    "counts", "findings", "noise_rate", "noise_rate_interval", "class_noise", "noise_transition",
    "diagnosis", "signal_quality",
)  # fmt: skip
"""What run.json says that follows from a judgement; everything else stays as it was."""

OBSERVED = (
    "seed", "loss", "backbone", "epochs", "held_out_accuracy", "held_out_leaks",
    "held_out_accuracy_without_leaks",
)  # fmt: skip
"""What run.json says about the observation that the report repeats."""


def report(
    folder: Path,
    *,
    manifest: Path | None = None,
    decisions: Path | None = None,
    wait: Log | None = None,
) -> Run:
    """Judge a run again and rewrite what follows from that; run.json goes first and comes last.

    Args:
        folder: The run folder.
        manifest: Where the audited manifest is now; None: where it was.
        decisions: What people decided; their labels count as verified, over what the audit was
            told already. None: nothing new.
        wait: Told for whom we wait to write into the folder; None: we do not.

    Raises:
        DataError: A file of the run is missing or belongs to another, or the manifest changed.
        OutputError: Another process writes into the folder.
    """
    lock = folder_lock(folder)
    with one_writer(lock, "report", wait=wait, needed=folder.is_dir()):
        return _report(folder, manifest, decisions)


def _report(folder: Path, manifest: Path | None, decisions: Path | None) -> Run:
    run = open_audited(folder, manifest, half_reported=True)
    evidence = _evidence(run)
    if decisions is not None:
        people = {**evidence.people, **read_decisions(decisions, run.manifest)}
        evidence = replace(evidence, people=people)
    facts = dict(run.facts)
    known = run.facts.get("truth")
    truth = None if not isinstance(known, dict) else read_truth(run.manifest, known["column"])
    RunFolder(folder).sweep()
    seen = {name: facts[name] for name in OBSERVED if name in facts}
    found = judge_with_decisions(run.manifest, evidence, seen, _policy(run))
    RunFolder(folder).set_aside()
    found = write_judged(found, folder, DataSettings(**facts["recipe"]["data"]), truth)
    fresh = run_facts(found)
    facts |= {name: fresh[name] for name in JUDGED}
    if truth is not None:
        facts["truth"] = found.facts["truth"]
    facts["reported"] = fresh["ran"]
    facts["decisions"] = len(evidence.people)
    return Run(folder, found, RunFolder(folder).finish(facts))


def _policy(run: OpenedRun) -> Policy:
    try:
        return Policy(**run.facts["recipe"]["correction"])
    except (TypeError, KeyError) as error:
        raise DataError(f"{run.folder / RUN} holds no policy of labelclean ({error}).") from error


def _evidence(run: OpenedRun) -> Evidence:
    path = run.folder / RECORDS
    read_run_table(path, run.facts)
    evidence = read_evidence(path)
    row, probs = evidence.row, evidence.probs
    unseen = np.array([*evidence.unreadable], np.int64)
    require_rows(path, np.concatenate([row, unseen, evidence.left_out]), run)
    sound = probs.shape == (len(row), len(run.manifest.classes)) and probs.dtype.kind == "f"
    if not sound or not ((probs >= 0) & (probs <= 1.001)).all():
        raise DataError(f"{path} holds no probabilities of these classes; audit the data again.")
    return evidence
