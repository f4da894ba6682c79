"""Networks that each leave rows out: they never see a row's label, and go on after a kill."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from labelclean.data.sources import ArrayImages
from labelclean.losses import build
from labelclean.models.settings import ModelSettings
from labelclean.options import silent
from labelclean.training.fit import Fitter
from labelclean.training.folds import cross_fit
from labelclean.training.runtime import Runtime
from labelclean.training.samples import Samples
from labelclean.training.settings import TrainSettings

COUNT, TRAINED = 70, 60
FOLD = np.arange(TRAINED) % 3
MODES = {
    "scratch": (ModelSettings("resnet20", image_size=8), TrainSettings(epochs=4, batch_size=20)),
    "finetune": (
        ModelSettings("lite0", image_size=32),
        TrainSettings(epochs=4, batch_size=20, frozen_stages=3),
    ),
}


def samples_of(digits) -> Samples:
    pictures, label = (part[:COUNT] for part in digits)
    return Samples(
        source=ArrayImages(pictures),
        rows=np.arange(COUNT),
        digest=np.array([list(ArrayImages(pictures).load(row)[1]) for row in range(COUNT)],
                        np.uint8),
        trained=TRAINED,
        label=label,
        weight=np.ones(TRAINED, np.float32),
        sample_id=np.arange(COUNT).astype(str).astype(object),
        num_classes=3,
        picture_side=8,
    )  # fmt: skip


def fitter_of(samples, mode, tmp_path, workspace=None) -> Fitter:
    model, training = MODES[mode]
    return Fitter(
        samples, model, training.resolved(mode, TRAINED), Runtime(torch.device("cpu")),
        decoders=1, cache=tmp_path, workspace=workspace,
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_a_row_is_judged_by_a_network_that_never_saw_its_label(digits, tmp_path, mode):
    samples = samples_of(digits)
    changed = samples.label.copy()
    changed[4] = (changed[4] + 1) % 3
    said = [
        cross_fit(fitter_of(one, mode, tmp_path), FOLD, partial(build, "nal")).probs
        for one in (samples, replace(samples, label=changed))
    ]
    assert np.allclose(said[0].sum(axis=1), 1, atol=1e-5)
    own = FOLD[4] == FOLD
    np.testing.assert_array_equal(said[0][own], said[1][own])
    # The networks that were trained on the row did see it, so they are not what they were.
    for k in {0, 1, 2} - {FOLD[4]}:
        assert not np.array_equal(said[0][k == FOLD], said[1][k == FOLD])


class KilledError(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("moment", [("fold 1 of 3", 3), ("fold 2 of 3", 1), ("fold 3 of 3", 4)])
def test_a_killed_cross_fit_goes_on_to_the_same_bytes(digits, tmp_path, moment):
    class Bar:
        def __init__(self, title):
            self.title = title

        def __enter__(self):
            return self.tell

        def __exit__(self, *_):
            return False

        def tell(self, done, total):
            # Counted in rows that were seen, over four epochs.
            if (self.title, done * 4) == (moment[0], moment[1] * total):
                raise KilledError

    samples, loss = samples_of(digits), partial(build, "gce")
    whole = cross_fit(fitter_of(samples, "scratch", tmp_path), FOLD, loss)
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(KilledError):
        cross_fit(fitter_of(samples, "scratch", tmp_path, work), FOLD, loss, Bar)
    again = cross_fit(fitter_of(samples, "scratch", tmp_path, work), FOLD, loss)
    np.testing.assert_array_equal(whole.probs, again.probs)


def test_what_stops_before_the_later_epochs_speaks_as_it_is(digits, tmp_path):
    samples = replace(samples_of(digits), validation={"noisy": np.arange(TRAINED, COUNT)})
    model, training = MODES["scratch"]
    settings = replace(training, epochs=30, early_stop="noisy", patience=1, learning_rate=1e-9)
    fitter = Fitter(
        samples, model, settings.resolved("scratch", TRAINED), Runtime(torch.device("cpu")),
        decoders=1, cache=tmp_path, workspace=None,
    )  # fmt: skip
    said = fitter.again(samples, "one").fit_apart(build("cce"), 10, silent)
    assert said.shape == (10, 3)
    assert np.isfinite(said).all()
