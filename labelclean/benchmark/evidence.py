"""What every source of evidence is worth where the truth is known: fused, alone, left out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from labelclean.arrays import Bools, Probs
from labelclean.benchmark.metrics import (
    average_precision,
    best_f1,
    calibration_error,
    ranking_scores,
)
from labelclean.benchmark.rivals import cleanlab_answer, cross_validated
from labelclean.calibration.fused import fuse_sources
from labelclean.correction.actions import KEEP
from labelclean.correction.judging import judge_evidence
from labelclean.data.manifest import Manifest
from labelclean.errors import ConfigError
from labelclean.evidence.cross_fitted import CROSS_FITTED, with_cross_fitted
from labelclean.evidence.features import ClassPosteriors, FeatureEvidence, PreparedFeatures
from labelclean.evidence.network import with_network
from labelclean.evidence.sources import NETWORK, SOURCES
from labelclean.options import RunOptions
from labelclean.outputs.truth import UNKNOWN, Truth
from labelclean.recipe import Recipe
from labelclean.training.runtime import Runtime
from labelclean.workflows.collect import collect_evidence
from labelclean.workflows.observe import Observation, observe


@dataclass(frozen=True, slots=True)
class EvidenceScore:
    """How good one judgement of a column of labels was, on rows of known truth.

    Args:
        labels: The column.
        method: `labelclean`: all sources; `NAME alone`: 1 - p(given) of one; `without NAME`: all
            others, weighed and judged anew; `cleanlab`.
        true_noise: Share of wrong labels.
        ap: Average precision of the ranking.
        best_f1: Of the best cut of the ranking.
        f1: Of the cut; None: a source alone makes none.
        estimate, noise_error: Estimated share of wrong labels, and how far it is off.
        calibration: Error of p_error.
        weight: Of a source in the pool of all; None: there is no pool.
    """

    labels: str
    method: str
    true_noise: float
    ap: float
    best_f1: float
    f1: float | None = None
    estimate: float | None = None
    noise_error: float | None = None
    calibration: float | None = None
    weight: float | None = None


def score_evidence(
    manifest: Manifest,
    truth: Truth,
    recipe: Recipe,
    runtime: Runtime,
    options: RunOptions,
    rival: bool,
) -> list[EvidenceScore]:
    """Observe a manifest of known truth once, and score everything that was said about it.

    Nothing is trained again to leave a source out: the network and its trial on planted labels
    stay those of the whole run, even where `auto` would have chosen another loss.

    Raises:
        ConfigError: A rival was asked for, and the recipe leaves no frozen features to share.
    """
    mode = recipe.training.mode
    if rival and (mode == "scratch" or (mode == "finetune" and not recipe.model.pretrained)):
        raise ConfigError("--against cleanlab shares frozen features; use --set training.mode=head")
    kept: list[tuple[PreparedFeatures, ClassPosteriors]] = []
    seen = observe(
        manifest,
        recipe,
        runtime,
        options=options,
        hear=lambda prepared, given: kept.append((prepared, given)),
    )
    scores = [_judged("labelclean", seen, truth)]
    sources = _sources(seen, kept[0][1] if kept else None)
    scores += [_alone(name, probs, seen, truth) for name, probs in sources.items()]
    for prepared, given in kept:
        for name, others in _ablations(seen, prepared, given):
            scores.append(_judged(f"without {name}", replace(seen, features=others), truth))
        if rival:
            scores.append(_cleanlab_score(prepared, seen, truth, runtime.seed))
    return scores


def _sources(seen: Observation, given: ClassPosteriors | None) -> dict[str, Probs]:
    """Give (n, C) what every source says, whether it was asked to join or not."""
    records = seen.fitted.records
    network = records.probs if records.mean_probs is None else records.mean_probs
    apart = {} if seen.cross_fitted is None else {CROSS_FITTED: seen.cross_fitted.probs}
    return {**({} if given is None else given.sources), **apart, NETWORK: network}


def _ablations(
    seen: Observation, prepared: PreparedFeatures, given: ClassPosteriors
) -> Iterator[tuple[str, FeatureEvidence]]:
    """Give the evidence without each source in turn, as `--evidence` with the others would."""
    whole, label = seen.features, seen.fitted.records.label
    if whole is None:
        return
    network, trial, planted = seen.fitted.records, whole.trial, whole.planted
    spoke, apart = NETWORK in whole.quality, seen.cross_fitted
    asked = [name for name in SOURCES if seen.recipe.evidence.asks(name)]
    for name in asked:
        held_out = {
            one: probs for one, probs in given.sources.items() if one in asked and one != name
        }
        silent = (name == NETWORK and not spoke) or (name == CROSS_FITTED and apart is None)
        if silent or not held_out:
            continue
        fused, fusion = fuse_sources(
            held_out, label, given.fold, distance=given.distance, verified=prepared.verified
        )
        others = replace(whole, fused=fused, fusion=fusion)
        if apart is not None and name != CROSS_FITTED:
            others = with_cross_fitted(others, apart.probs, label, prepared.verified)
        heard = name != NETWORK and spoke
        if heard and trial is not None and planted is not None:
            others = with_network(others, network, trial, planted, whole.strange)
        yield name, others


def _judged(method: str, seen: Observation, truth: Truth) -> EvidenceScore:
    """Judge the evidence of an observation as an audit does."""
    evidence = collect_evidence(seen)
    found = judge_evidence(seen.manifest, evidence, {}, policy=seen.recipe.correction)
    true = truth.label[found.row]
    rows = (true != UNKNOWN) & ~np.isnan(found.suspicion)
    wrong, p_error = found.given[rows] != true[rows], found.p_error[rows]
    declined = found.noise_rate is None
    signal = found.suspicion[rows] if declined else p_error
    calibration = None if declined else calibration_error(wrong, p_error)
    flagged = found.action[rows] != KEEP
    score = _cut_score(method, seen, (wrong, signal, flagged), found.noise_rate)
    return replace(score, calibration=calibration)


def _cut_score(
    method: str, seen: Observation, cut: tuple[Bools, Probs, Bools], estimate: float | None
) -> EvidenceScore:
    """Score a method that ranks, cuts and estimates."""
    scores = ranking_scores(*cut)
    off = None if estimate is None else abs(estimate - scores["true_noise"])
    return EvidenceScore(
        labels=str(seen.manifest.label_col),
        method=method,
        **scores,
        estimate=estimate,
        noise_error=off,
    )


def _alone(name: str, probs: Probs, seen: Observation, truth: Truth) -> EvidenceScore:
    """Score the plain doubt of one source."""
    label, true = seen.fitted.records.label, truth.label[seen.rows]
    known = true != UNKNOWN
    wrong = (label != true)[known]
    signal = (1 - probs[np.arange(len(label)), label].astype(np.float64))[known]
    pooled = seen.features
    return EvidenceScore(
        labels=str(seen.manifest.label_col),
        method=f"{name} alone",
        true_noise=float(wrong.mean()),
        ap=average_precision(wrong, signal),
        best_f1=best_f1(wrong, signal) if wrong.any() else float("nan"),
        weight=None if pooled is None else pooled.fusion.weights.get(name, 0.0),
    )


def _cleanlab_score(
    prepared: PreparedFeatures, seen: Observation, truth: Truth, seed: int
) -> EvidenceScore:
    """Let cleanlab do the same on the same frozen features."""
    label, true = seen.fitted.records.label, truth.label[seen.rows]
    answer = cleanlab_answer(label, cross_validated(prepared.features, label, seed))
    known = true != UNKNOWN
    cut = (label != true)[known], answer.suspicion[known], answer.flagged[known]
    return _cut_score("cleanlab", seen, cut, answer.noise_rate)
