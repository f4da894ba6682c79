"""What a training will cost, from a short probe of the network that is trained."""

import copy
import time
from dataclasses import replace

import torch

from labelclean.models.classifier import PictureClassifier, feature_width
from labelclean.models.head import Head
from labelclean.training.fit import Fitter
from labelclean.training.runtime import one_thread_each

_PROBED = 16  # pictures
_FORWARD = 1 / 3  # a forward pass is about so much of a training step
_HEAD_SECONDS = 2e-5  # a row's share of one epoch of a head


def seconds_until_trained(fitter: Fitter, frozen: Fitter | None = None) -> float:
    """Guess the seconds until the model is trained.

    Args:
        fitter: What trains.
        frozen: What computes features that no label has touched; None: none are asked for.
    """
    samples, runtime, epochs = fitter.samples, fitter.runtime, fitter.training.epochs or 1
    features = 0.0 if frozen is None else _feature_seconds(frozen)
    if fitter.backbone is None or fitter.extractor is not None:
        return features + _HEAD_SECONDS * samples.trained * epochs
    look, step = _training_seconds(fitter)
    # A second training of the same kind is on labels with planted errors; each ends with two looks
    # at every sample, for probabilities and features.
    same = 2 if fitter.training.mode == "finetune" else 1
    passes = same * (epochs + 2 * _FORWARD)
    folds = fitter.training.folds
    if folds:
        # Each leaves its part out, and looks at it after all epochs but the first third.
        passes += (folds - 1) * epochs + (epochs - epochs // 3) * _FORWARD
    whole = look * len(samples.rows) + step * passes * samples.trained
    return features + whole / runtime.processes


def _probe(fitter: Fitter) -> torch.Tensor:
    """Give black pictures as the fitter's network takes them."""
    size = 0 if fitter.backbone is None else fitter.backbone.spec.size
    return torch.zeros(_PROBED, size, size, 3, dtype=torch.uint8, device=fitter.runtime.device)


def _feature_seconds(fitter: Fitter) -> float:
    """Guess the seconds until the features that are not in the cache are computed."""
    if fitter.extractor is None:
        return 0.0
    pictures = _probe(fitter)
    with one_thread_each(), torch.inference_mode():
        fitter.extractor.embedder(pictures)
        began = time.perf_counter()
        fitter.extractor.embedder(pictures)
        each = (time.perf_counter() - began) / _PROBED / fitter.runtime.threads
    return each * fitter.missing_features() / fitter.runtime.processes


def _training_seconds(fitter: Fitter) -> tuple[float, float]:
    """Give the seconds that frozen stages take for a picture, and one of its training steps."""
    if fitter.backbone is None:
        raise TypeError("pictures need a backbone")
    pictures = _probe(fitter)
    width = feature_width(fitter.backbone)
    head = Head(width, fitter.samples.num_classes, hidden=0, attention=False)
    # A copy: the probe must not move the weights or the statistics of norms.
    network = replace(fitter.backbone, network=copy.deepcopy(fitter.backbone.network))
    stages = fitter.training.frozen_stages
    model = PictureClassifier(network, head, stages).to(pictures.device).train()
    seconds = [0.0, 0.0]
    for _ in range(2):  # the first time memory is allocated
        began = time.perf_counter()
        batch = model.lower(pictures) if stages else pictures
        looked = time.perf_counter()
        model(batch).logits.sum().backward()
        seconds = [looked - began, time.perf_counter() - looked]
    look, step = (value / _PROBED for value in seconds)
    return look, step


def duration_text(seconds: float) -> str:
    """Give a duration as a person says it: "40 s", "12 min", "1.5 h"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
