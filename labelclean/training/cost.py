"""What features and a training will cost, from short probes of the networks on this machine."""

import copy
import time
from dataclasses import replace

import numpy as np
import torch

from labelclean.models.classifier import PictureClassifier, feature_width
from labelclean.models.head import Head
from labelclean.training.fit import Fitter
from labelclean.training.pictures import Pictures
from labelclean.training.runtime import one_thread_each
from labelclean.training.settings import head_batch_size

_PROBED = 16  # pictures
_FORWARD = 1 / 3  # a forward pass is about so much of a training step
_PRODUCT = (256, 1024, 512)  # about the shape of the products of a head
STEP = 1.0e-3  # seconds of a step that no matrix is to blame for: Python, autograd, the optimiser
WEIGHT = 4e-9  # seconds to move one weight of a head
NUMBER = 1.5e-8  # seconds for an exponential or a logarithm and what goes with it
_RECORDED = 2.0  # times STEP, where rows are recorded
_LISTENED = 0.05  # seconds of work that show how busy the machine is


def seconds_until_trained(fitter: Fitter, frozen: Fitter | None = None, busy: float = 1.0) -> float:
    """Guess the seconds until the model is trained.

    Args:
        fitter: What trains.
        frozen: What computes features that no label has touched; None: none are asked for.
        busy: See `busy_factor`.
    """
    samples, runtime, epochs = fitter.samples, fitter.runtime, fitter.training.epochs or 1
    features = 0.0 if frozen is None else _feature_seconds(frozen, busy)
    if fitter.backbone is None or fitter.extractor is not None:
        width = fitter.width()
        each = head_epoch_seconds(samples.trained, width, samples.num_classes)
        return features + busy * epochs * each
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


def _feature_seconds(fitter: Fitter, busy: float) -> float:
    """Guess the seconds until the features that are not in the cache are computed."""
    missing, samples = fitter.missing_features(), fitter.samples
    if fitter.extractor is None or not missing or isinstance(samples.source, np.ndarray):
        return 0.0
    embedder, spec = fitter.extractor.embedder, fitter.extractor.backbone.spec
    # Real ones, all over the table: to decode a large picture costs more than to look at it.
    some = np.linspace(0, len(samples.rows) - 1, min(_PROBED, len(samples.rows))).astype(np.int64)
    pictures = Pictures(samples.source, samples.rows, spec, threads=1, keep_bytes=0)
    with one_thread_each(), torch.inference_mode():
        embedder(_probe(fitter)[: len(some)])  # the first time memory is allocated
        on_cpu = fitter.runtime.device.type == "cpu"
        # On a CPU what was worked: a short look at the clock of a busy machine errs.
        clock = time.process_time if on_cpu else time.perf_counter
        began = clock()
        for batch in pictures.batches([some]):
            embedder(batch.to(fitter.runtime.device))
        each = (clock() - began) / len(some) / fitter.runtime.threads
    return each * missing / fitter.runtime.processes * (busy if on_cpu else 1.0)


def busy_factor() -> float:
    """Measure how much longer than its own work anything takes while others want the cores."""
    began, worked = time.perf_counter(), time.process_time()
    with one_thread_each():
        while time.process_time() - worked < _LISTENED:
            torch.mm(torch.ones(256, 256), torch.ones(256, 256))
    return max(1.0, (time.perf_counter() - began) / (time.process_time() - worked))


def head_epoch_seconds(rows: int, width: int, classes: int) -> float:
    """Guess the seconds of an epoch of a linear head whose rows are recorded, on one thread."""
    steps = -(-rows // head_batch_size(rows))
    each = _RECORDED * STEP + width * classes * WEIGHT
    matrix = 3 * width * classes * multiply_seconds()
    return steps * each + rows * (matrix + 8 * classes * NUMBER)


def multiply_seconds() -> float:
    """Measure a multiply-add of a large matrix product in single precision, on one thread."""
    rows, inner, columns = _PRODUCT
    left, right = torch.ones(rows, inner), torch.ones(inner, columns)
    best = float("inf")
    with one_thread_each():
        for _ in range(4):
            began = time.process_time()
            torch.mm(left, right)
            best = min(best, time.process_time() - began)
    return best / (rows * inner * columns)


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
