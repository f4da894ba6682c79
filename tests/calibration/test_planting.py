from dataclasses import replace

import numpy as np
import pytest
from simulated_arrays import simulated

from labelclean.calibration.flips import along_ranking, calibrate_with_flips, choose_head
from labelclean.calibration.planting import plant_flips
from labelclean.errors import ConfigError, DataError
from labelclean.records.records import Records


@pytest.mark.parametrize("kind", ["uniform", "confusion"])
def test_planted_rows_are_wrong_and_can_be_restored(kind):
    label, probs, _ = simulated(1000)
    before = label.copy()
    planted = plant_flips(label, 4, 0.1, np.random.default_rng(0), kind, probs)
    np.testing.assert_array_equal(label, before)
    assert len(planted.rows) == planted.mask.sum() == 100
    assert (planted.label[planted.rows] != label[planted.rows]).all()
    np.testing.assert_array_equal(planted.label[~planted.mask], label[~planted.mask])
    np.testing.assert_array_equal(planted.restored(), label)


def test_confusion_draws_what_the_model_sees():
    label = np.zeros(2000, dtype=np.int64)
    probs = np.tile([0.5, 0.45, 0.05, 0.0], (2000, 1))
    planted = plant_flips(label, 4, 0.5, np.random.default_rng(0), "confusion", probs)
    share = np.bincount(planted.label[planted.rows], minlength=4) / 1000
    np.testing.assert_allclose(share, [0, 0.9, 0.1, 0], atol=0.03)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 0.0}, "above 0"),
        ({"share": 0.6}, "0.5"),
        ({"kind": "odd"}, "unknown kind"),
        ({"kind": "confusion"}, "probabilities"),
    ],
)
def test_wrong_use_is_refused(options, message):
    settings = {"share": 0.1, "kind": "uniform"} | options
    with pytest.raises(ConfigError, match=message):
        plant_flips(np.zeros(10, dtype=np.int64), 3, rng=np.random.default_rng(0), **settings)


def head(true, size, seed, skill=4.0):
    """A stand-in for training: sees the truth and, a little, the labels it is given."""

    def fit(labels):
        rng = np.random.default_rng(seed)
        logits = rng.standard_normal((len(labels), size))
        logits += skill * np.eye(size)[true] + 0.5 * np.eye(size)[labels]
        probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        noise = rng.random((1, len(labels))).astype(np.float32)
        return Records(labels, probs.astype(np.float32), probs.astype(np.float32), attention=noise)

    return fit


def test_signals_are_weighed_by_what_planting_shows():
    label, _, true = simulated(1500, rate=0.15)
    given = label.copy()
    report = calibrate_with_flips(head(true, 4, 0), label, 4, np.random.default_rng(0))
    np.testing.assert_array_equal(label, given)
    np.testing.assert_array_equal(report.records.label, given)
    assert report.auroc["self_confidence"] > 0.85
    assert report.auroc["attention"] == pytest.approx(0.5, abs=0.1)
    assert "attention" not in report.weights
    assert sum(report.weights.values()) == pytest.approx(1)
    assert set(report.rate_by_flips) == {"uniform", "confusion"}
    assert report.fused_p_error.mean() == pytest.approx(report.judgement.noise_rate, abs=1e-6)
    order = np.argsort(report.fused)
    assert (np.diff(report.fused_p_error[order]) >= -1e-9).all()


def test_the_better_head_is_chosen():
    label, _, true = simulated(1000, rate=0.15)
    reports = {
        name: calibrate_with_flips(head(true, 4, 0, skill), label, 4, np.random.default_rng(0))
        for name, skill in (("weak", 1.0), ("strong", 4.0))
    }
    assert choose_head(reports) == "strong"
    with pytest.raises(DataError, match="no head"):
        choose_head({})


def test_a_head_that_changes_labels_is_refused():
    label, _, true = simulated(200)
    fit = head(true, 4, 0)
    with pytest.raises(DataError, match="other labels"):
        calibrate_with_flips(
            lambda labels: replace(fit(labels), label=(labels + 1) % 4), label, 4,
            np.random.default_rng(0),
        )  # fmt: skip


def test_carrying_probabilities_over_keeps_the_rate():
    rng = np.random.default_rng(0)
    p, suspicion = rng.random(300) ** 3, rng.random(300)
    verified = np.zeros(300, dtype=bool)
    verified[:10] = True
    p[verified] = 0
    moved = along_ranking(p, suspicion, verified)
    assert moved.mean() == pytest.approx(p.mean())
    assert (moved[verified] == 0).all()
