"""What networks say about rows that they were not trained on, as one source among others."""

from dataclasses import replace

import numpy as np
from sklearn.metrics import average_precision_score

from labelclean.arrays import Bools, Ints, Singles
from labelclean.calibration.fused import Fusion, fuse_sources
from labelclean.calibration.planting import fair_rows
from labelclean.evidence.features import FeatureEvidence

CROSS_FITTED = "cross_fitted"
_OTHERS = "others"


def fuse_cross_fitted(
    probs: Singles, label: Ints, fold: Ints, verified: Bools | None = None
) -> tuple[Singles, Fusion]:
    """Let cross-fitted networks speak alone, as sure as the given labels show that they may be.

    Args:
        probs: (N, C) posteriors of the network that left the row out.
        label: (N,) given labels.
        fold: (N,) 0 ... K-1.
        verified: (N,) rows whose label is known to be right.
    """
    return fuse_sources({CROSS_FITTED: probs}, label, fold, verified=verified)


def with_cross_fitted(
    features: FeatureEvidence, probs: Singles, label: Ints, verified: Bools | None = None
) -> FeatureEvidence:
    """Let cross-fitted networks speak beside the sources on frozen features.

    Args:
        features: The evidence of the other sources that did not see the row's label.
        probs: (N, C) posteriors of the network that left the row out.
        label: (N,) given labels.
        verified: (N,) rows whose label is known to be right.
    """
    before = features.fusion
    fused, fusion = fuse_sources(
        {_OTHERS: features.fused, CROSS_FITTED: probs},
        label,
        before.fold.astype(np.int64),
        distance=before.distance,
        verified=verified,
    )
    others = fusion.weights[_OTHERS]
    weights = {name: weight * others for name, weight in before.weights.items()}
    weights[CROSS_FITTED] = fusion.weights[CROSS_FITTED]
    quality = dict(features.quality)
    planted = features.planted
    if planted is not None:
        # Which label a row was given says nothing to a network that left the row out.
        fair = fair_rows(planted, features.fused)
        doubt = 1 - probs[np.arange(len(label)), planted.label]
        found = average_precision_score(planted.mask[fair], doubt[fair])
        quality[CROSS_FITTED] = {"ap": round(float(found), 4)}
    return replace(features, fused=fused, fusion=replace(fusion, weights=weights), quality=quality)
