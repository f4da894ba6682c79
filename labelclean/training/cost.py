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


def seconds_until_trained(fitter: Fitter) -> float:
    """Guess the seconds until the model is trained."""
    samples, runtime = fitter.samples, fitter.runtime
    epochs = fitter.training.epochs or 1
    head = _HEAD_SECONDS * samples.trained * epochs
    if fitter.backbone is None:
        return head
    size = fitter.backbone.spec.size
    pictures = torch.zeros(_PROBED, size, size, 3, dtype=torch.uint8, device=runtime.device)
    if fitter.extractor is None:
        look, step = _training_seconds(fitter, pictures)
        # A second training, on labels with planted errors.
        trainings = 2.0 if fitter.training.mode == "finetune" else 1.0
        folds = fitter.training.folds
        if folds:
            # Each leaves its part out, and looks at it after all epochs but the first third.
            looks = (epochs - epochs // 3) / epochs
            trainings += folds - 1 + looks * _FORWARD
        whole = look * len(samples.rows) + step * trainings * samples.trained * epochs
        return whole / runtime.processes
    with one_thread_each(), torch.inference_mode():
        fitter.extractor.embedder(pictures)
        began = time.perf_counter()
        fitter.extractor.embedder(pictures)
        each = (time.perf_counter() - began) / _PROBED / runtime.threads
    return head + each * fitter.missing_features() / runtime.processes


def _training_seconds(fitter: Fitter, pictures: torch.Tensor) -> tuple[float, float]:
    """Give the seconds that looking at a picture once, and one of its training steps, take."""
    if fitter.backbone is None:
        raise TypeError("pictures need a backbone")
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
    return look + step * _FORWARD, step


def duration_text(seconds: float) -> str:
    """Give a duration as a person says it: "40 s", "12 min", "1.5 h"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
