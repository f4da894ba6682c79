"""Judge a finished run again from its records, with what people decided since; no training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean.concluding import RECORDS, Run, write_judged
from labelclean.correction.policy import Policy
from labelclean.data.settings import DataSettings
from labelclean.decisions import CONFIRM, DROP, NONE, RELABEL, UNSURE, Decisions, read_decisions
from labelclean.errors import DataError
from labelclean.judging import Testimony, judge_testimony
from labelclean.opened_run import OpenedRun, open_run, read_run_table, require_rows
from labelclean.outputs.run_json import run_facts
from labelclean.outputs.truth import read_truth
from labelclean.result import DROP as DROPPED
from labelclean.result import RELABEL as RELABELLED
from labelclean.result import REVIEW, UNREADABLE, Audit
from labelclean.testimony_store import read_testimony
from labelclean.workspace import RUN, RunFolder

JUDGED = (
    "counts", "noise_rate", "noise_rate_interval", "class_noise", "noise_transition", "diagnosis",
    "signal_quality",
)  # fmt: skip
"""What run.json says that follows from a judgement; everything else stays as it was."""


def report(folder: Path, *, manifest: Path | None = None, decisions: Path | None = None) -> Run:
    """Judge a run again and rewrite what follows from that, run.json last.

    Args:
        folder: The run folder.
        manifest: Where the audited manifest is now; None: where it was.
        decisions: What people decided; their labels count as verified. None: nothing.

    Raises:
        DataError: A file of the run is missing or belongs to another, or the manifest changed.
    """
    run = open_run(folder, manifest)
    people = {} if decisions is None else read_decisions(decisions, run.manifest)
    testimony = _testimony(run)
    facts = dict(run.facts)
    known = run.facts.get("truth")
    truth = None if not isinstance(known, dict) else read_truth(run.manifest, known["column"])
    RunFolder(folder).sweep()
    found = settle(run, testimony, people, _policy(run))
    found = write_judged(found, folder, DataSettings(**facts["recipe"]["data"]), truth)
    fresh = run_facts(found)
    facts |= {name: fresh[name] for name in JUDGED}
    if truth is not None:
        facts["truth"] = found.facts["truth"]
    facts["reported"] = fresh["ran"]
    facts["decisions"] = len(people)
    RunFolder(folder).finish(facts)
    return Run(folder, found, facts)


def settle(run: OpenedRun, testimony: Testimony, people: Decisions, policy: Policy) -> Audit:
    """Judge with people's labels taken for right, then say what they decided about their rows."""
    given = run.manifest
    label, verified = given.label.copy(), given.verified.copy()
    for row, decision in people.items():
        if decision.what in (CONFIRM, RELABEL):
            verified[row] = True
            label[row] = given.label[row] if decision.label is None else decision.label
    judged = judge_testimony(
        replace(given.with_label(label), verified=verified),
        testimony,
        {"seed": run.facts.get("seed")},
        policy=policy,
    )
    return _settled(replace(judged, manifest=given), people) if people else judged


def _settled(audit: Audit, people: Decisions) -> Audit:
    """Put people's decisions over the judge's; a label they replaced was certainly wrong."""
    place = {int(row): at for at, row in enumerate(audit.row)}
    columns = {
        name: getattr(audit, name).copy()
        for name in ("suggested", "action", "p_error", "suspicion", "p_suggested", "reason")
    }
    wrong = []
    for row, decision in people.items():
        at = place.get(row)
        if at is None or audit.action[at] == UNREADABLE:
            continue
        own = int(audit.manifest.label[row])
        replaced = decision.label is not None and decision.label != own
        if replaced:
            _set(columns, at, decision.label, RELABELLED, "a person gave this label")
        elif decision.what in (DROP, NONE):
            _set(columns, at, own, DROPPED, "a person says no label fits" if decision.what == NONE
                 else "a person left it out")  # fmt: skip
        elif decision.what == UNSURE:
            _set(columns, at, own, REVIEW, "a person was not sure")
        else:
            columns["reason"][at] = "a person confirmed the label"
        if replaced or decision.what == NONE:
            wrong.append(at)
    columns["p_error"][wrong] = 1.0
    columns["suspicion"][wrong] = 1.0
    return _ranked(audit, columns, wrong)


def _set(
    columns: dict[str, NDArray[Any]], at: int, label: int | None, action: str, reason: str
) -> None:
    columns["suggested"][at], columns["action"][at], columns["reason"][at] = label, action, reason
    if action == RELABELLED:
        columns["p_suggested"][at] = 1.0


def _ranked(audit: Audit, columns: dict[str, NDArray[Any]], wrong: list[int]) -> Audit:
    """Move what is certainly wrong to the front, and count it in the noise rate."""
    front = np.zeros(len(audit.row), bool)
    front[wrong] = True
    order = np.argsort(~front, kind="stable")
    rate, (low, high) = audit.noise_rate, audit.noise_interval
    said = audit.diagnosis
    if wrong and rate is not None:
        error = columns["p_error"][columns["action"] != UNREADABLE]
        shift, rate = float(error.mean()) - rate, float(error.mean())
        low, high = min(1.0, max(0.0, low + shift)), min(1.0, high + shift)
        said = (
            *said,
            f"People found {len(wrong)} more labels wrong; with them the rate is {rate:.1%} "
            f"({low:.1%} to {high:.1%}).",
        )
    return replace(
        audit,
        row=audit.row[order],
        signals={name: values[order] for name, values in audit.signals.items()},
        noise_rate=rate,
        noise_interval=(low, high),
        diagnosis=said,
        suggested=columns["suggested"][order],
        action=columns["action"][order],
        p_error=columns["p_error"][order],
        suspicion=columns["suspicion"][order],
        p_suggested=columns["p_suggested"][order],
        reason=columns["reason"][order],
    )


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
    require_rows(path, np.concatenate([row, np.array([*testimony.unreadable], np.int64)]), run)
    sound = probs.shape == (len(row), len(run.manifest.classes)) and probs.dtype.kind == "f"
    if not sound or not ((probs >= 0) & (probs <= 1.001)).all():
        raise DataError(f"{path} holds no probabilities of these classes; audit the data again.")
    return testimony
