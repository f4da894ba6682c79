"""What the plan line counts; how long it really takes depends on the machine."""

import time
from dataclasses import replace

import numpy as np
import torch

from labelclean.data.sources import ArrayImages
from labelclean.models.settings import ModelSettings
from labelclean.training.cost import busy_factor, seconds_until_trained
from labelclean.training.fit import Fitter
from labelclean.training.runtime import Runtime
from labelclean.training.samples import Samples
from labelclean.training.settings import TrainSettings

COUNT = 60


def fitter_of(digits, tmp_path, mode, model, **settings) -> Fitter:
    pictures, label = (part[:COUNT] for part in digits)
    samples = Samples(
        source=ArrayImages(pictures),
        rows=np.arange(COUNT),
        digest=np.arange(COUNT * 32, dtype=np.uint8).reshape(COUNT, 32),
        trained=COUNT,
        label=label,
        weight=np.ones(COUNT, np.float32),
        sample_id=np.arange(COUNT).astype(str).astype(object),
        num_classes=3,
        picture_side=8,
    )
    training = replace(TrainSettings(epochs=5), **settings).resolved(mode, COUNT)
    return Fitter(
        samples, model, training, Runtime(torch.device("cpu")),
        decoders=1, cache=tmp_path, workspace=None,
    )  # fmt: skip


def test_every_network_that_leaves_rows_out_is_counted(digits, tmp_path):
    model = ModelSettings("resnet20", image_size=16)
    one, many = (
        seconds_until_trained(fitter_of(digits, tmp_path, "scratch", model, folds=folds))
        for folds in (0, 20)
    )
    assert many > 5 * one > 0


def test_features_that_no_label_has_touched_are_counted_where_they_are_missing(digits, tmp_path):
    model = ModelSettings("lite0", image_size=64)
    head = fitter_of(digits, tmp_path, "head", model)
    assert head.missing_features() == COUNT
    alone = seconds_until_trained(head)
    assert seconds_until_trained(head, head) > 3 * alone > 0


def test_a_busy_machine_is_noticed(monkeypatch):
    assert busy_factor() >= 1
    work = [0.0]

    def worked():
        work[0] += 0.02
        return work[0]

    monkeypatch.setattr(time, "process_time", worked)
    monkeypatch.setattr(time, "perf_counter", lambda: 10 * work[0])
    assert 5 < busy_factor() < 20
