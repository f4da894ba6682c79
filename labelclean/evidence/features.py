"""Evidence from frozen features: several class posteriors of every row, and planted flips.

What a loss or signal is worth differs from data set to data set. So heads are also trained on a
copy of the labels in which known errors were planted; how well each finds those decides which
robust loss is trained, and is reported.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from labelclean import losses
from labelclean.arrays import ENOUGH_ROWS, Floats, Ints
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.fused import Fusion, fuse_sources
from labelclean.calibration.pattern import fit_pattern, responsibilities, start_matrix
from labelclean.calibration.planting import PlantedFlips, fair_rows, plant_flips
from labelclean.evidence.components import principal_components
from labelclean.evidence.discriminant import (
    at_scale,
    choose_shrinkage,
    discriminant_scores,
    likely_scale,
)
from labelclean.evidence.folds import assign_folds, some_rows
from labelclean.evidence.neighbours import nearest_rows, vote
from labelclean.evidence.noise_aware import NoiseAwareSettings, train_noise_aware_heads
from labelclean.evidence.sources import EvidenceSettings
from labelclean.evidence.together import hush_twins, join_groups, keep_together
from labelclean.options import OpenProgress, no_progress
from labelclean.records.records import Records
from labelclean.training.quick_head import train_quick_head

TRIAL_EPOCHS = 8  # enough to tell losses apart on planted rows
ATTENTION_LOSS = "nal"
CANDIDATE_LOSSES: Mapping[str, Mapping[str, object]] = {
    "cce": {},
    "gce": {},
    "sce": {},
    "imae": {},
    "gr": {},
}
"""Losses that `auto` chooses from."""


@dataclass(frozen=True, slots=True)
class ClassPosteriors:
    """What frozen features say about the true class of N rows, never with the row's own label.

    Args:
        sources: Name to (N, C): noise-aware `heads`, `discriminant` analysis, `neighbours`.
        fold: (N,) the folds of the heads.
        distance: (N,) squared distance to the nearest class.
        transition: (C, C) P(given | true), as the heads estimate it.
    """

    sources: Mapping[str, Floats]
    fold: Ints
    distance: Floats
    transition: Floats


@dataclass(frozen=True, slots=True)
class FeatureEvidence:
    """Everything the judge needs, and what planted flips said about it.

    Args:
        fused: (N, C) pool of the sources' posteriors.
        fusion: How it came about.
        attention: Records of the attention loss on the given labels.
        neighbour_agreement: (N,) the neighbours' vote for the given label.
        near: (N, k) the nearest rows, nearest first.
        loss: Name of the best loss on planted rows.
        planted: Labels with known errors, which trials are trained on; None: too many rows.
        trial: Records of the network, trained on them; None: it was not.
        strange: Rows whose pictures that training saw scrambled.
        quality: Signal to its AUROC and average precision on planted rows.
    """

    fused: NDArray[np.float32]
    fusion: Fusion
    attention: Records
    neighbour_agreement: Floats
    near: Ints
    loss: str
    planted: PlantedFlips | None = None
    trial: Records | None = None
    strange: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    quality: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


class PreparedFeatures:
    """Frozen features made ready once, so that any labels can be judged on them.

    Args:
        features: (N, D) scaled features.
        num_classes: C.
        weight: (N,) how much a row counts in training.
        seed: Seed of folds, orders and draws.
        group: (N,) rows that belong together; None: none do.
        verified: (N,) rows whose label is known to be right; None: none.
        heads: How the noise-aware heads are trained; None: as suits a backbone's features.
        twins: (N,) rows that show the same picture have one number, -1: no such row; None: none.
    """

    def __init__(
        self,
        features: NDArray[np.float32],
        num_classes: int,
        *,
        weight: NDArray[np.float32],
        seed: int,
        group: NDArray[np.object_] | None = None,
        verified: NDArray[np.bool_] | None = None,
        heads: NoiseAwareSettings | None = None,
        twins: Ints | None = None,
    ) -> None:
        self.features, self.num_classes, self.weight = features, num_classes, weight
        self.seed, self.group, self.settings = seed, group, heads
        self.verified = verified if verified is not None and verified.any() else None
        known = judge_constants()
        self.components = principal_components(features, known.components)
        self.near, self.similar = nearest_rows(
            self.components[:, : known.near_components], known.neighbours
        )
        self.twins = twins if twins is not None and (twins >= 0).any() else None
        if self.twins is not None:
            self.similar = hush_twins(self.near, self.similar, self.twins)
            self.group = None if group is None else join_groups(group, self.twins)

    def _folds(self, label: Ints, count: int, rng: np.random.Generator) -> Ints:
        """(N,) folds that keep groups and copies of a picture together."""
        fold = assign_folds(label, count, rng, self.group)
        return fold if self.twins is None else keep_together(fold, self.twins)

    def posteriors(self, label: Ints, progress: OpenProgress = no_progress) -> ClassPosteriors:
        """Ask the noise-aware heads, the generative model and the neighbours about labels (N,)."""
        constants, rng = judge_constants(), np.random.default_rng([self.seed, 1])
        fold = self._folds(label, constants.folds, rng)

        def estimate(rows: Ints, probs: Floats, table: Floats) -> Floats:
            if self.verified is not None:
                free = ~self.verified[rows]
                rows, probs = rows[free], probs[free]
            return fit_pattern(label[rows], probs, 0.0, table, constants.transition_steps)

        with progress("heads") as on_progress:
            heads = train_noise_aware_heads(
                self.features,
                label,
                self.weight,
                fold,
                self.num_classes,
                estimate,
                seed=self.seed,
                settings=self.settings,
                on_progress=on_progress,
            )
        # A matrix of a million rows and a hundred classes takes 0.8 GB: none is held for longer
        # than it is needed.
        transition, held_out = heads.transition, _log(heads.out_of_fold)
        del heads
        held_out = at_scale(held_out, likely_scale(held_out, label, transition))
        shares = responsibilities(label, held_out, transition)
        if self.verified is not None:
            shares[self.verified] = np.eye(self.num_classes)[label[self.verified]]
        many = self._folds(label, constants.discriminant_folds, rng)
        with progress("discriminant"):
            shrinkage = choose_shrinkage(self.components, shares, fold, label, transition)
            scores, distance = discriminant_scores(self.components, shares, many, (shrinkage,))
            discriminant = scores[0].astype(np.float64)
            discriminant = at_scale(discriminant, likely_scale(discriminant, label, transition))
        with progress("neighbours"):
            votes = vote(self.near, self.similar, shares) + constants.vote_floor
            votes /= votes.sum(axis=1, keepdims=True)
        sources = {"heads": held_out, "discriminant": discriminant, "neighbours": votes}
        return ClassPosteriors(sources, fold, distance[0], transition)

    def head(
        self,
        label: Ints,
        name: str,
        params: Mapping[str, object],
        epochs: int | None = None,
        rows: Ints | slice = slice(None),
    ) -> Records:
        """Train one head with a loss of the catalogue on the labels of some rows."""
        return train_quick_head(
            self.components[rows],
            label,
            self.weight[rows],
            self.num_classes,
            losses.build(name, **params),
            seed=self.seed,
            epochs=epochs,
        )

    def plant(self, label: Ints, table: Floats) -> PlantedFlips:
        """Plant errors of the data set's own pattern (C, C) in a copy of the labels."""
        rng, share = np.random.default_rng([self.seed, 2]), judge_constants().planted
        return plant_flips(label, self.num_classes, share, rng, "pattern", table)


Hear = Callable[[PreparedFeatures, ClassPosteriors], None]


def gather_feature_evidence(
    prepared: PreparedFeatures,
    label: Ints,
    candidates: Mapping[str, Mapping[str, object]],
    progress: OpenProgress = no_progress,
    settings: EvidenceSettings | None = None,
    hear: Hear | None = None,
) -> FeatureEvidence:
    """Ask all sources about the given labels, and choose a loss by planted flips.

    Args:
        prepared: The features, made ready.
        label: (N,) the given labels; never changed.
        candidates: Losses to choose from, with their parameters.
        progress: Opens a progress bar by name.
        settings: Which sources may speak; None: all.
        hear: Told what every source says about the given labels, as it is not kept.
    """
    asked = settings or EvidenceSettings()
    given = prepared.posteriors(label, progress)
    if hear is not None:
        hear(prepared, given)
    with progress("weigh"):
        fused, fusion = fuse_sources(
            {name: probs for name, probs in given.sources.items() if asked.asks(name)},
            label,
            given.fold,
            distance=given.distance,
            verified=prepared.verified,
        )
    transition, held_out = given.transition, given.sources["heads"]
    agreement = given.sources["neighbours"][np.arange(len(label)), label]
    del given
    rows = some_rows(len(label), ENOUGH_ROWS)
    start = start_matrix(prepared.num_classes)
    table = fit_pattern(label[rows], fused[rows], fusion.share, start)
    planted = prepared.plant(label[rows], table)
    everywhere = label.copy()
    everywhere[rows] = planted.label
    shares = responsibilities(everywhere, held_out, transition)
    votes = vote(prepared.near[rows], prepared.similar[rows], shares)
    del held_out, shares
    with progress("attention"):
        attention = prepared.head(label, ATTENTION_LOSS, {})
    trial, tried = {}, {**candidates, ATTENTION_LOSS: {}}
    with progress("planted") as on_progress:
        for name, params in tried.items():
            trial[name] = prepared.head(planted.label, name, params, TRIAL_EPOCHS, rows)
            on_progress(len(trial) * len(rows), len(tried) * len(rows))
    signals = _signals(planted.label, trial, votes)
    # Rows that look wrong as given are no fair example of right labels.
    fair = fair_rows(planted, fused[rows])
    quality = {name: _quality(planted.mask[fair], signal[fair]) for name, signal in signals.items()}
    loss = max(candidates, key=lambda name: quality[name]["ap"])
    whole = len(rows) == len(label)
    return FeatureEvidence(
        fused=fused,
        fusion=fusion,
        attention=attention,
        neighbour_agreement=agreement,
        near=prepared.near,
        loss=loss,
        planted=planted if whole else None,
        quality=quality,
    )


def _log(probs: Floats) -> Floats:
    """Take the logarithm in place."""
    probs += 1e-12
    return np.log(probs, out=probs)


def _signals(label: Ints, heads: Mapping[str, Records], votes: Floats) -> dict[str, Floats]:
    rows = np.arange(len(label))
    signals = {name: 1.0 - records.probs[rows, label] for name, records in heads.items()}
    attention = heads[ATTENTION_LOSS]
    if attention.attention is not None:
        signals["attention"] = 1.0 - attention.attention[-1]
    if attention.target is not None:
        signals["target_given"] = 1.0 - attention.target[rows, label]
    signals["neighbour_agreement"] = 1.0 - votes[rows, label]
    return {name: np.asarray(signal, dtype=np.float64) for name, signal in signals.items()}


def _quality(mask: NDArray[np.bool_], signal: Floats) -> dict[str, float]:
    return {
        "auroc": round(float(roc_auc_score(mask, signal)), 4),
        "ap": round(float(average_precision_score(mask, signal)), 4),
    }
