"""What the trained network says, as far as planted rows show that it can be believed.

A network has seen the labels it speaks about and has learnt some errors by heart. How many can be
told: the same training, on labels in which known errors were planted and with some pictures
scrambled until they show none of the classes, tells how much it still doubts rows that are
certainly wrong. That decides how its suspicions (average p(y|x) and margin, epochs with another
prediction, NAL's tau and target where they were trained) and the log-odds of the sources that never
saw the row's label become one, and how many of the given labels look as wrong.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.special import logit
from sklearn.metrics import average_precision_score

from labelclean.arrays import Bools, Floats, Ints, Singles
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.fused import held_out_odds, judge_fused
from labelclean.calibration.planted_mixture import PlantedMixture, fit_planted_mixture
from labelclean.calibration.planting import PlantedFlips, fair_rows
from labelclean.calibration.pool import pool
from labelclean.evidence.features import FeatureEvidence
from labelclean.evidence.network_signals import network_signals
from labelclean.evidence.sources import NETWORK
from labelclean.records.records import Records

JOINING = ("mean_p", "converged_p", "average_margin", "tau", "target")
"""Suspicions that planted rows weigh; the others of `network_signals` are made of the same and, on
birds and numerals, cost up to .006 of AP beside them."""
_EDGE = 1e-6
_PROBABILITIES = ("mean_p", "converged_p")


def with_network(
    features: FeatureEvidence,
    network: Records,
    trial: Records,
    planted: PlantedFlips,
    strange: Ints,
) -> FeatureEvidence:
    """Let the trained network speak beside the held-out sources.

    Args:
        features: The evidence of the held-out sources.
        network: What training on the given labels recorded.
        trial: What the same training on planted labels recorded.
        planted: Which labels were planted.
        strange: Rows whose pictures the trial saw scrambled.
    """
    given, count = network.label, len(network.label)
    own, other = _suspicions(network), _suspicions(trial)
    names = [name for name in JOINING if name in own and name in other]
    seen = np.stack([own[name] for name in names], axis=1)
    flipped, scrambled = planted.mask, np.zeros(count, bool)
    scrambled[strange] = True
    apart = held_out_odds(planted.label, given, features.fused, features.fusion)
    tried = np.column_stack([apart, *(other[name] for name in names)])
    fair = fair_rows(planted, features.fused, _posteriors(trial)) & ~scrambled
    convicted = judge_fused(given, features.fused, features.fusion).p_error > 0.5
    learnt = _learn(tried, flipped, scrambled, fair & ~flipped, convicted)
    quality = {
        **{name: _precision(flipped, values, fair) for name, values in other.items()},
        "ap": _precision(flipped, learnt.log_odds(tried), fair),
        "ap_without": _precision(flipped, apart, fair),
        "least_rate": round(learnt.least, 4),
        "most_rate": round(learnt.rate, 4),
    }
    known = {**features.quality, NETWORK: quality}
    features = replace(features, quality=known, trial=trial, strange=strange)
    weights = dict(zip(names, learnt.slopes[0, 1:] * tried[:, 1:].std(axis=0), strict=True))
    if not any(weights.values()):
        return features
    share = likely_share(features.fused, _posteriors(trial), given, planted)
    # Two networks say more than one; but what was planted has misled the second.
    misled = (flipped | scrambled)[:, None]
    both = np.where(misled, _posteriors(network), (_posteriors(network) + _posteriors(trial)) / 2)
    fused = pool([features.fused, both], np.array([1 - share, share]))
    fusion = replace(
        features.fusion,
        held_out=features.fused,
        weights=_weights(features.fusion.weights, weights, learnt.slopes[0, 0] * apart.std()),
        learnt=learnt,
        suspicions=seen.astype(np.float32),
    )
    return replace(features, fused=fused, fusion=fusion)


def likely_share(fused: Singles, trial: Singles, given: Ints, planted: PlantedFlips) -> float:
    """Give the network's share in the pool under which planted rows get their own class back.

    Args:
        fused: (N, C) pool of the sources that did not see the row's label.
        trial: (N, C) the network's posteriors, trained on the planted labels.
        given: (N,) the labels before.
        planted: The labels it was trained on.
    """
    rows = planted.rows
    at = np.arange(len(rows))

    def explained(share: float) -> float:
        pooled = pool([fused[rows], trial[rows]], np.array([1 - share, share])).astype(np.float64)
        pooled[at, planted.label[rows]] = 0.0
        return float(np.log(pooled[at, given[rows]] / pooled.sum(axis=1) + _EDGE).mean())

    return max(judge_constants().network_shares, key=explained)


def _learn(
    tried: Floats, flipped: Bools, scrambled: Bools, believed: Bools, convicted: Bools
) -> PlantedMixture:
    """Learn what wrong labels look like; held-out sources never saw the scrambled pictures."""
    everything = np.ones(tried.shape[1], bool)
    kinds, heard = [flipped], [everything]
    if scrambled.any():
        kinds.append(scrambled)
        heard.append(everything & (np.arange(tried.shape[1]) > 0))
    return fit_planted_mixture(tried, kinds, believed, convicted, heard)


def _posteriors(records: Records) -> Singles:
    return records.probs if records.mean_probs is None else records.mean_probs


def _suspicions(records: Records) -> dict[str, Floats]:
    """Give (N,) suspicions, probabilities among them as log-odds."""
    return {
        name: logit(np.clip(values, _EDGE, 1 - _EDGE)) if name in _PROBABILITIES else values
        for name, values in network_signals(records).items()
    }


def _weights(
    before: Mapping[str, float], added: Mapping[str, float], apart: float
) -> dict[str, float]:
    """Give every source's share of what moves the ranking."""
    moved = sum(added.values())
    share = moved / (moved + apart)
    return {**{name: weight * (1 - share) for name, weight in before.items()}, NETWORK: share}


def _precision(wrong: Bools, doubt: Floats, rows: Bools) -> float:
    return round(float(average_precision_score(wrong[rows], doubt[rows])), 4)
