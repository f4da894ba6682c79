"""What people decided, put over a judgement: their rows say so, all others learn from it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean.calibration.answers import Recalibration
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.judgement import Judgement
from labelclean.calibration.noise_model import MODEL_CONFIDENCE, rate_headline
from labelclean.correction.actions import DROP, RELABEL, UNREADABLE
from labelclean.correction.answers import Heard, Learned, answers_of, learn, sample_of
from labelclean.correction.decisions import Decisions, meanings
from labelclean.correction.judging import allowed, conclude, judge_rows
from labelclean.correction.kinds import FINE, MISLABELLED, OUTLIER
from labelclean.correction.outlook import with_outlook
from labelclean.correction.policy import Policy
from labelclean.correction.result import Audit
from labelclean.correction.sample import Judged, by_row
from labelclean.data.manifest import Manifest
from labelclean.evidence.value import Evidence

SAMPLE_CONFIDENCE = 95
"""Percent; of what a random sample of answers tells."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known once people have answered.

    Args:
        told: What people said, in a sentence.
        rate: Share of wrong labels among all readable audited rows; None: no estimate.
        interval: Its bounds.
        confidence: How sure these are, in percent.
        facts: The estimate as plain data; None below 20 answers.
    """

    told: str
    rate: float | None
    interval: tuple[float, float]
    confidence: int
    facts: Mapping[str, Any] | None


def judge_with_decisions(
    manifest: Manifest,
    evidence: Evidence,
    facts: Mapping[str, object],
    policy: Policy,
    heard: Heard | None = None,
) -> Audit:
    """Judge the labels as given, learn from what people said, and put that over their rows.

    Args:
        manifest: The whole input, as it was given.
        evidence: What was observed, and what people had decided by then.
        facts: Plain data to carry into run.json.
        policy: What to flag and what to do about it.
        heard: What people decided since; None: nothing.
    """
    heard = heard or Heard()
    people = {**evidence.people, **heard.decisions}
    judgement, policy = judge_rows(manifest, evidence), allowed(evidence, policy)
    alone = conclude(manifest, evidence, judgement, facts, policy)
    if not people:
        return with_outlook(alone)
    learned = _learned(alone, evidence, people, policy, heard)
    known = _known(*_decided(alone, people), learned, heard)
    if learned is not None:
        label = manifest.label[evidence.row]
        judgement = corrected(judgement, label, evidence.probs, learned.change)
        policy = _proven(policy, learned)
    if known.rate is not None:
        judgement = replace(judgement, noise_rate=known.rate, interval=known.interval)
    settled = np.isin(evidence.row, np.array(sorted(people), np.int64))
    found = _decided(conclude(manifest, evidence, judgement, facts, policy, settled), people)[0]
    said = found.diagnosis
    if known.rate is not None:
        said = (rate_headline(known.rate, known.interval, known.confidence), *said[1:])
    said = (*said[:1], known.told, *said[1:])
    return with_outlook(replace(found, answers=known.facts, diagnosis=said))


def judged_alone(audit: Audit) -> Judged:
    """Give what a run says about its rows without people, by row."""
    return by_row(audit.row, audit.action, audit.suggested, audit.p_error, audit.p_suggested)


def rows_seen(evidence: Evidence) -> NDArray[np.int64]:
    """Give the rows whose decisions went into evidence that has seen the labels."""
    fusion = evidence.fusion
    taught = evidence.in_sample or (fusion is not None and fusion.held_out is not None)
    return np.array(sorted(evidence.people) if taught else [], np.int64)


def _learned(
    alone: Audit, evidence: Evidence, people: Decisions, policy: Policy, heard: Heard
) -> Learned | None:
    if alone.noise_rate is None:
        return None
    judged, precision = judged_alone(alone), policy.relabel_precision
    plan = sample_of(judged, evidence.people, heard, precision)
    said = answers_of(judged, alone.manifest.label[judged.row], people)
    seen = np.isin(judged.row, rows_seen(evidence))
    return learn(plan, judged.p_error, said, precision=precision, seen=seen)


def corrected(
    judgement: Judgement,
    label: NDArray[np.int64],
    probs: NDArray[np.floating],
    change: Recalibration,
) -> Judgement:
    """Correct a judgement by what people found; its order stays.

    A suggestion is never surer than it was: answers speak of the given labels. Where a label is
    now rather wrong than right, the likeliest other class is suggested, for a person to look at.

    Args:
        judgement: What the evidence alone says about n rows.
        label: (n,) given classes.
        probs: (n, C) class posteriors.
        change: What people found.
    """
    before = judgement.p_error.astype(np.float64)
    p_error = change(before)
    suggested, moved = judgement.suggested.copy(), judgement.suggested != label
    p_suggested = 1 - p_error
    scale = np.minimum(1.0, p_error[moved] / np.maximum(before[moved], 1e-12))
    p_suggested[moved] = judgement.p_suggested[moved] * scale
    doubtful = np.flatnonzero(~moved & (p_error > 0.5))
    other = probs[doubtful].astype(np.float64)
    other[np.arange(len(doubtful)), label[doubtful]] = 0.0
    rival, whole = other.argmax(axis=1), other.sum(axis=1)
    likely = p_error[doubtful] * other.max(axis=1, initial=0.0) / np.maximum(whole, 1e-12)
    better = likely > 1 - p_error[doubtful]
    at = doubtful[better]
    suggested[at] = rival[better]
    p_suggested[at] = np.minimum(judge_constants().unsupported, likely[better])
    return replace(
        judgement, p_error=p_error, suggested=suggested, p_suggested=p_suggested.astype(np.float32)
    )


def _proven(policy: Policy, learned: Learned) -> Policy:
    """Relabel nothing more without a person where people found too many relabels wrong."""
    between = learned.estimate.relabel_interval
    if policy.mode == "careful" and between is not None and between[1] < policy.relabel_precision:
        return replace(policy, mode="review")
    return policy


def _decided(audit: Audit, people: Decisions) -> tuple[Audit, NDArray[np.float64]]:
    """Put people's decisions over the judge's; a label they replaced was certainly wrong.

    Returns:
        The audit, and (M,) 1 where a person found the label wrong, 0 where right, else NaN.
    """
    position = {int(row): at for at, row in enumerate(audit.row)}
    columns = {
        name: getattr(audit, name).copy()
        for name in ("suggested", "action", "p_error", "suspicion", "p_suggested", "reason")
    }
    kind = audit.beside["kind"].copy()
    decided, verdict = np.zeros(len(audit.row), bool), np.full(len(audit.row), np.nan)
    for row, meant in meanings(audit.manifest, people).items():
        at = position.get(row)
        if at is None or audit.action[at] == UNREADABLE:
            continue
        decided[at] = True
        columns["suggested"][at] = meant.label
        columns["action"][at], columns["reason"][at] = meant.action, meant.reason
        if meant.action == RELABEL:
            columns["p_suggested"][at] = 1.0
        if meant.wrong is not None:
            verdict[at] = float(meant.wrong)
            lost = OUTLIER if meant.action == DROP else MISLABELLED
            kind[at] = lost if meant.wrong else FINE
    said = np.isfinite(verdict)
    columns["p_error"] = np.where(said, verdict, columns["p_error"])
    columns["suspicion"] = np.where(said, verdict, columns["suspicion"])
    columns["p_suggested"][verdict == 0] = 1.0
    # What is certainly wrong comes first, what is certainly right behind the doubtful.
    place = np.where(np.isnan(columns["p_error"]), 3, 1)
    place[verdict == 1], place[verdict == 0] = 0, 2
    order = np.argsort(place, kind="stable")
    beside = {**audit.beside, "kind": kind}
    moved = replace(
        audit,
        row=audit.row[order],
        decided=decided[order],
        signals={name: values[order] for name, values in audit.signals.items()},
        beside={name: values[order] for name, values in beside.items()},
        **{name: values[order] for name, values in columns.items()},
    )
    return moved, verdict[order]


def _known(
    decided: Audit, verdict: NDArray[np.float64], learned: Learned | None, heard: Heard
) -> Known:
    """Give the noise rate with what people found in it, and what it rests on."""
    looked = np.zeros(len(decided.row), bool) if decided.decided is None else decided.decided
    wrong, right = (int(np.count_nonzero(verdict == one)) for one in (1, 0))
    unclear = int(np.count_nonzero(looked)) - wrong - right
    told = (
        f"People looked at {wrong + right + unclear} rows: {wrong} labels are wrong, {right} right"
        + (f", {unclear} not clear." if unclear else ".")
    )
    rate, between = decided.noise_rate, decided.noise_interval
    facts = None if learned is None else {**asdict(learned.estimate), "sampled": learned.sampled}
    if learned is not None and learned.sampled:
        found = learned.estimate
        return Known(told, found.noise_rate, found.noise_interval, SAMPLE_CONFIDENCE, facts)
    if heard.earlier is not None:
        low, high = heard.earlier["noise_interval"]
        facts = {**heard.earlier, "inherited": True}
        return Known(told, facts["noise_rate"], (low, high), SAMPLE_CONFIDENCE, facts)
    if rate is not None and wrong + right:
        rows = int(np.count_nonzero(np.isfinite(decided.p_error)))
        p_error = decided.p_error if learned is None else learned.change(decided.p_error)
        mean = float(np.nanmean(p_error))
        moved = [min(max(end + mean - rate, wrong / rows), 1 - right / rows) for end in between]
        rate, between = mean, (min(moved[0], mean), max(moved[1], mean))
    return Known(told, rate, between, MODEL_CONFIDENCE, facts)
