"""Judge a finished run again from its records, with what people decided since; no training."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from labelclean.correction.decisions import read_decisions
from labelclean.correction.judging import Testimony
from labelclean.correction.policy import Policy
from labelclean.correction.settling import settle
from labelclean.data.settings import DataSettings
from labelclean.errors import DataError
from labelclean.outputs.run_folder import RECORDS
from labelclean.outputs.run_json import run_facts
from labelclean.outputs.truth import read_truth
from labelclean.runs.evidence_store import read_testimony
from labelclean.runs.folder import RUN, RunFolder
from labelclean.runs.reading import OpenedRun, open_run, read_run_table, require_rows
from labelclean.workflows.conclude import Run, write_judged

JUDGED = (
    "counts", "noise_rate", "noise_rate_interval", "class_noise", "noise_transition", "diagnosis",
    "signal_quality",
)  # fmt: skip
"""What run.json says that follows from a judgement; everything else stays as it was."""

OBSERVED = ("seed", "loss", "backbone", "epochs", "held_out_accuracy")
"""What run.json says about the observation that the report repeats."""


def report(folder: Path, *, manifest: Path | None = None, decisions: Path | None = None) -> Run:
    """Judge a run again and rewrite what follows from that; run.json goes first and comes last.

    Args:
        folder: The run folder.
        manifest: Where the audited manifest is now; None: where it was.
        decisions: What people decided; their labels count as verified, over what the audit was
            told already. None: nothing new.

    Raises:
        DataError: A file of the run is missing or belongs to another, or the manifest changed.
    """
    run = open_run(folder, manifest, half_reported=True)
    testimony = _testimony(run)
    if decisions is not None:
        people = {**testimony.people, **read_decisions(decisions, run.manifest)}
        testimony = replace(testimony, people=people)
    facts = dict(run.facts)
    known = run.facts.get("truth")
    truth = None if not isinstance(known, dict) else read_truth(run.manifest, known["column"])
    RunFolder(folder).sweep()
    seen = {name: facts[name] for name in OBSERVED if name in facts}
    found = settle(run.manifest, testimony, seen, _policy(run))
    RunFolder(folder).set_aside()
    found = write_judged(found, folder, DataSettings(**facts["recipe"]["data"]), truth)
    fresh = run_facts(found)
    facts |= {name: fresh[name] for name in JUDGED}
    if truth is not None:
        facts["truth"] = found.facts["truth"]
    facts["reported"] = fresh["ran"]
    facts["decisions"] = len(testimony.people)
    RunFolder(folder).finish(facts)
    return Run(folder, found, facts)


def _policy(run: OpenedRun) -> Policy:
    try:
        return Policy(**run.facts["recipe"]["correction"])
    except (TypeError, KeyError) as error:
        raise DataError(f"{run.folder / RUN} holds no policy of labelclean ({error}).") from error


def _testimony(run: OpenedRun) -> Testimony:
    path = run.folder / RECORDS
    read_run_table(path, run.facts)
    testimony = read_testimony(path)
    row, probs = testimony.row, testimony.probs
    unseen = np.array([*testimony.unreadable], np.int64)
    require_rows(path, np.concatenate([row, unseen, testimony.left_out]), run)
    sound = probs.shape == (len(row), len(run.manifest.classes)) and probs.dtype.kind == "f"
    if not sound or not ((probs >= 0) & (probs <= 1.001)).all():
        raise DataError(f"{path} holds no probabilities of these classes; audit the data again.")
    return testimony
