"""What goes into a fit, and what comes out of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from torch import nn

from labelclean.data.sources import ImageSource
from labelclean.models.backbones import Backbone
from labelclean.models.head import FeatureScaling
from labelclean.records.records import Records
from labelclean.training.batches import Rows
from labelclean.training.parts import PartFeatures, PartStore


@dataclass(frozen=True, slots=True)
class Samples:
    """Readable samples, those to train on first; n of M.

    Args:
        source: The pictures of the whole manifest, or its (rows, D) features.
        rows: (M,) rows of the manifest.
        digest: (M, 32) content of each.
        trained: How many of them, from the first on, are trained on: n.
        label: (M,) int64 given labels.
        weight: (n,) float32.
        sample_id: (M,) text.
        num_classes: Number of classes C.
        picture_side: Typical shorter side of the pictures, in pixels; None for features.
        parts: Shards that hold the features of the manifest's rows; None: there are none.
        validation: For each way to stop early, `noisy` and `clean`, the samples to look at.
        verified: (M,) samples whose label a person vouched for; None: none.
    """

    source: ImageSource | NDArray[np.float32]
    rows: Rows
    digest: NDArray[np.uint8]
    trained: int
    label: NDArray[np.int64]
    weight: NDArray[np.float32]
    sample_id: NDArray[np.object_]
    num_classes: int
    picture_side: int | None
    parts: PartStore | None = None
    validation: Mapping[str, Rows] = field(default_factory=dict)
    verified: NDArray[np.bool_] | None = None

    def with_parts(self, parts: PartStore | None) -> "Samples":
        """Take features from shards, and the size of pictures they were computed for."""
        if parts is None:
            return self
        return replace(self, picture_side=parts.plan.picture_side, parts=parts)

    def features_of(self, key: str) -> PartFeatures | None:
        """Give the features that shards hold, if they are those of an extractor's key."""
        if self.parts is None or self.parts.plan.key != key:
            return None
        return self.parts.features(self.rows)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A trained model and what it said.

    Args:
        records: Of the n samples trained on.
        model: The head, or the whole network.
        scaling: What the head's features go through first; None for a whole network.
        backbone: The frozen or trained backbone; None for given features.
        other_probs: (M - n, C) probabilities of the samples that were not trained on.
        epochs: How many epochs were trained.
        best_epoch: The epoch that was kept, if training could stop early; else -1.
    """

    records: Records
    model: nn.Module
    scaling: FeatureScaling | None
    backbone: Backbone | None
    other_probs: NDArray[np.float32]
    epochs: int
    best_epoch: int
