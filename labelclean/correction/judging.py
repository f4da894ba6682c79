"""The cheap half of an audit: from stored evidence to decisions, repeatable without training."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from labelclean.calibration.constants import judge_constants
from labelclean.calibration.fused import judge_fused
from labelclean.calibration.judgement import Judgement, judge
from labelclean.calibration.noise_model import noise_model
from labelclean.calibration.outlying import with_outliers
from labelclean.correction.actions import DROP, KEEP, UNREADABLE
from labelclean.correction.kinds import class_ambiguity, copies, likeliest_kind, with_beside
from labelclean.correction.policy import Policy, decide, least_flagged
from labelclean.correction.result import Audit
from labelclean.data.manifest import Label, Manifest
from labelclean.evidence.ranking import most_suspect_first
from labelclean.evidence.value import Evidence

_IN_SAMPLE = (
    "The network judged rows and labels it was trained on, so it is surer than it should be: "
    "nothing is relabelled without a person. --set training.folds=2 trains networks that each "
    "leave rows out; --mode head and --mode finetune with pretrained weights have evidence that "
    "no label has touched."
)


def judge_evidence(
    manifest: Manifest,
    evidence: Evidence,
    facts: Mapping[str, object],
    *,
    policy: Policy | None = None,
) -> Audit:
    """Rank, calibrate and decide; no training, no files.

    Args:
        manifest: The whole input.
        evidence: What was observed about its rows.
        facts: Plain data to carry into run.json.
        policy: What to flag and what to do about it; None: careful.
    """
    judgement = judge_rows(manifest, evidence)
    return conclude(manifest, evidence, judgement, facts, allowed(evidence, policy or Policy()))


def allowed(evidence: Evidence, policy: Policy) -> Policy:
    """Give the policy as far as the evidence allows it."""
    if evidence.in_sample and policy.mode == "careful":
        return replace(policy, mode="review")
    return policy


def judge_rows(manifest: Manifest, evidence: Evidence) -> Judgement:
    """Estimate for every observed row the probability that its label is wrong."""
    label, verified = manifest.label[evidence.row], manifest.verified[evidence.row]
    known = verified if verified.any() else None
    if evidence.fusion is None:
        return judge(label, evidence.probs, verified=known)
    found = judge_fused(label, evidence.probs, evidence.fusion, known)
    return with_outliers(found, label, evidence.signals.get("p_outlier"), known)


def conclude(
    manifest: Manifest,
    evidence: Evidence,
    judgement: Judgement,
    facts: Mapping[str, object],
    policy: Policy,
    settled: NDArray[np.bool_] | None = None,
) -> Audit:
    """Decide about judged rows, say why, and add what was found beside wrong labels.

    Args:
        manifest: The whole input.
        evidence: What was observed about its rows.
        judgement: What that says about them.
        facts: Plain data to carry into run.json.
        policy: What to flag and what to do about it.
        settled: (n,) rows a person decided, about which there is nothing to decide; None: none.
    """
    label, verified = manifest.label[evidence.row], manifest.verified[evidence.row]
    done = verified if settled is None else verified | settled
    known = done if done.any() else None
    order = most_suspect_first(judgement.log_odds)
    better = judgement.suggested, judgement.p_suggested
    least = least_flagged(judgement.noise_rate, judgement.interval)
    action = decide(
        label, judgement.p_error, order, *better, policy, known, least, bounded=judgement.bounded
    )
    suggested = np.where(action == KEEP, label, judgement.suggested)
    same = evidence.duplicates
    conflicting = np.isin(evidence.row, same.conflicts(manifest.label))
    where = conflicting, _nowhere(judgement)
    reason = _reasons(manifest.classes, action, suggested, label, evidence.signals, *where)
    own, kind = _beside(evidence, judgement, action, suggested, label, conflicting, verified)
    noise = None
    if judgement.noise_rate is not None:
        noise = noise_model(judgement, label, manifest.classes, int(conflicting.sum()))
    diagnosis = noise.diagnosis if noise is not None else judgement.notes
    if evidence.in_sample:
        diagnosis = (*diagnosis, _IN_SAMPLE)
    bad = np.array(sorted(evidence.unreadable), dtype=np.int64)
    unseen = np.concatenate([evidence.left_out, bad])
    fate = np.array([DROP] * len(evidence.left_out) + [UNREADABLE] * len(bad), dtype=object)
    why = [evidence.unreadable.get(row, "left out") for row in unseen.tolist()]
    nothing = np.full(len(unseen), np.nan)
    signals = {
        name: np.concatenate([np.asarray(values, np.float64)[order], nothing])
        for name, values in own.items()
    }
    rows = np.concatenate([evidence.row[order], unseen])
    beside = copies(same, manifest, rows)
    words = np.concatenate([reason[order], np.array(why, dtype=object)])
    return Audit(
        manifest=manifest,
        row=rows,
        suggested=np.concatenate([suggested[order], manifest.label[unseen]]),
        action=np.concatenate([action[order], fate]),
        p_error=np.concatenate([judgement.p_error[order], nothing]),
        suspicion=np.concatenate([judgement.suspicion[order], nothing]),
        p_suggested=np.concatenate([_confidence(judgement, suggested, label)[order], nothing]),
        signals=signals,
        reason=with_beside(words, rows, beside["leaks_to"], evidence.faults),
        noise=noise,
        noise_rate=judgement.noise_rate,
        noise_interval=judgement.interval,
        diagnosis=diagnosis,
        beside={"kind": np.concatenate([kind[order], np.full(len(unseen), None)]), **beside},
        unknown=evidence.unknown,
        quality=evidence.quality,
        facts=facts,
    )


def _beside(
    evidence: Evidence,
    judgement: Judgement,
    action: NDArray[np.object_],
    suggested: NDArray[np.int64],
    label: NDArray[np.int64],
    conflicting: NDArray[np.bool_],
    verified: NDArray[np.bool_],
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.object_]]:
    """Give all signals, and the likeliest finding about every row; all (n,)."""
    own = {**evidence.signals, "ambiguity": class_ambiguity(evidence.probs)}
    moved = np.where(suggested != label, judgement.p_suggested.astype(np.float64), 0.0)
    outlier = own.get("p_outlier", np.full(len(label), np.nan))
    doubts = judgement.p_error.astype(np.float64), moved, outlier, own["ambiguity"]
    return own, likeliest_kind(action, *doubts, conflicting, verified)


def _confidence(
    judgement: Judgement, suggested: NDArray[np.int64], label: NDArray[np.int64]
) -> NDArray[np.float64]:
    kept = suggested == label
    return np.where(
        kept, 1 - judgement.p_error.astype(np.float64), judgement.p_suggested.astype(np.float64)
    )


def _nowhere(judgement: Judgement) -> NDArray[np.bool_]:
    """(n,) rows that are likelier to show none of the classes than another one."""
    if judgement.p_none is None:
        return np.zeros(len(judgement.suggested), bool)
    return np.asarray(judgement.p_none > judgement.p_error / 2)


def _reasons(
    classes: tuple[Label, ...],
    action: NDArray[np.object_],
    suggested: NDArray[np.int64],
    label: NDArray[np.int64],
    signals: Mapping[str, NDArray[np.float64]],
    conflicting: NDArray[np.bool_],
    nowhere: NDArray[np.bool_],
) -> NDArray[np.object_]:
    """Say in a few words why a row stands where it stands."""
    agreement, lonely = signals.get("neighbour_agreement"), judge_constants().lonely
    words = np.empty(len(label), dtype=object)
    for at in range(len(label)):
        if action[at] == KEEP:
            said = ["fits its label"]
        elif suggested[at] != label[at]:
            said = [f"looks like {classes[suggested[at]]}"]
        elif nowhere[at]:
            said = ["seems to show none of the classes"]
        else:
            said = ["fits its label badly, no other label fits better"]
        if action[at] != KEEP and agreement is not None and agreement[at] < lonely:
            said.append("few neighbours share the label")
        if conflicting[at]:
            said.append("the same picture occurs under another label")
        words[at] = "; ".join(said)
    return words
