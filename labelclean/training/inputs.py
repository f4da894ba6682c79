"""Samples made ready for a whole network: pictures, or what its frozen stages say about them."""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelclean.data.sources import ImageSource
from labelclean.models.backbones import Backbone
from labelclean.models.head import FeatureScaling
from labelclean.options import OnProgress
from labelclean.training.cache import FeatureCache
from labelclean.training.features import (
    Extractor,
    FeatureTable,
    GivenFeatures,
    find_features,
    fit_scaling,
    scaled_features,
)
from labelclean.training.maps import frozen_inputs
from labelclean.training.pictures import Augmentation, Pictures
from labelclean.training.runtime import Runtime
from labelclean.training.samples import Samples
from labelclean.training.settings import TrainSettings
from labelclean.training.task import Features, Inputs


def pictures_of(samples: Samples) -> ImageSource:
    """Give the pictures of samples that have them."""
    if isinstance(samples.source, np.ndarray):
        raise TypeError("features have no pictures")
    return samples.source


def picture_inputs(
    samples: Samples, backbone: Backbone, training: TrainSettings, runtime: Runtime, decoders: int
) -> Inputs:
    """Get pictures ready for a network that is trained from its frozen stages on.

    Args:
        samples: All samples.
        backbone: The network.
        training: Resolved settings.
        runtime: Where to compute.
        decoders: Threads that decode ahead.
    """
    augmentation = Augmentation(math.ceil(backbone.spec.size / 8), runtime.seed)
    pictures = Pictures(
        pictures_of(samples),
        samples.rows,
        backbone.spec,
        threads=decoders,
        augmentation=augmentation if training.augment else None,
        digest=samples.digest,
    )
    stages = training.frozen_stages
    return frozen_inputs(backbone, stages, pictures, runtime) if stages else pictures


def feature_inputs(
    samples: Samples,
    extractor: Extractor | None,
    cache: FeatureCache | None,
    workspace: Path | None,
    on_progress: OnProgress,
) -> tuple[Features, FeatureScaling]:
    """Get scaled features ready for a head.

    Args:
        samples: All samples.
        extractor: Computes them from pictures; None: they are the samples.
        cache: Keeps what the extractor computes.
        workspace: Folder for large arrays; None: memory.
        on_progress: Told how many are done.
    """
    table: FeatureTable
    if extractor is None or cache is None:
        table = GivenFeatures(np.asarray(samples.source), samples.rows)
    elif (stored := samples.features_of(extractor.key)) is not None:
        table = stored
    else:
        pictures = pictures_of(samples)
        table = find_features(extractor, pictures, samples.rows, samples.digest, cache, on_progress)
    scaling = fit_scaling(table, samples.trained)
    return Features(scaled_features(table, scaling, workspace)), scaling


def sample_weights(samples: Samples, balanced: bool) -> NDArray[np.float32]:
    """(n,) how much each sample to train on counts; `balanced` makes all classes count alike."""
    if not balanced:
        return samples.weight
    label = samples.label[: samples.trained]
    counts = np.bincount(label, minlength=samples.num_classes)
    present = int((counts > 0).sum())
    return (samples.weight * (len(label) / present / counts[label])).astype(np.float32)
