"""What the trained network says, as far as planted rows show that it can be believed.

A network has seen the labels it speaks about and has learnt some errors by heart. How many can be
told: the same training, on labels in which known errors were planted, shows how much it still
doubts labels that are certainly wrong. That decides how much it weighs beside the sources that
never saw the row's label, and how many of the given labels it doubts as much.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logit
from sklearn.metrics import average_precision_score

from labelclean.arrays import Floats, Ints, Singles
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.planting import PlantedFlips, fair_rows
from labelclean.calibration.pool import pool
from labelclean.evidence.features import FeatureEvidence

_EDGE = 1e-7


@dataclass(frozen=True, slots=True)
class NetworkWeight:
    """What planted rows say about a trained network.

    Args:
        share: Its share in the pool beside the held-out sources, 0 to 1.
        rate: Share of the given labels that it and they doubt as much as planted ones.
        precision: Share tried to the average precision it reaches on planted rows.
    """

    share: float
    rate: float
    precision: dict[float, float]


def weigh_network(fused: Singles, trial: Singles, planted: PlantedFlips) -> NetworkWeight:
    """Choose how much a network counts, by how well planted rows are found.

    Rows that both they and the held-out sources call something else are no fair example of right
    labels, so planted rows are looked for among the others.

    Args:
        fused: (N, C) pool of the sources that did not see the row's label.
        trial: (N, C) the network's posteriors, trained on the planted labels.
        planted: The labels it was trained on, and which of them were planted.
    """
    known = judge_constants()
    label, mask = planted.label, planted.mask
    fair = fair_rows(planted, fused, trial)
    doubt = {
        share: _doubt(pool([fused, trial], np.array([1 - share, share])), label)
        for share in known.network_shares
    }
    found = {
        share: round(float(average_precision_score(mask[fair], values[fair])), 4)
        for share, values in doubt.items()
    }
    share = max(found, key=lambda one: found[one])
    edge = float(np.quantile(doubt[share][mask], 1 - known.planted_recall))
    beyond = float(np.mean(doubt[share][~mask] >= edge)) / known.planted_recall
    return NetworkWeight(share, min(1.0, beyond) if share else 0.0, found)


def _doubt(probs: Singles, label: Ints) -> Floats:
    own = probs[np.arange(len(label)), label].astype(np.float64)
    values: Floats = -logit(np.clip(own, _EDGE, 1 - _EDGE))
    return values


def with_network(
    features: FeatureEvidence, network: Singles, trial: Singles, planted: PlantedFlips
) -> FeatureEvidence:
    """Let the trained network speak beside the held-out sources.

    Args:
        features: The evidence of the held-out sources.
        network: (N, C) the network's posteriors, trained on the given labels.
        trial: (N, C) those of the same training on planted labels.
        planted: Which labels were planted.
    """
    weight = weigh_network(features.fused, trial, planted)
    best = {"ap": weight.precision[weight.share], "ap_without": weight.precision[0.0]}
    quality = {**features.quality, "network": best}
    if not weight.share:
        return replace(features, quality=quality, trial=trial)
    # Two networks say more than one; but what was planted has misled the second.
    both = np.where(planted.mask[:, None], network, (network + trial) / 2)
    shares = np.array([1 - weight.share, weight.share])
    weights = {name: one * shares[0] for name, one in features.fusion.weights.items()}
    fusion = replace(
        features.fusion,
        held_out=features.fused,
        weights={**weights, "network": weight.share},
        planted_rate=weight.rate,
    )
    fused = pool([features.fused, both], shares)
    return replace(features, fused=fused, fusion=fusion, quality=quality, trial=trial)
