import numpy as np
import pytest
from simulated_arrays import simulated

from labelclean.calibration.planting import plant_flips
from labelclean.errors import ConfigError


@pytest.mark.parametrize("kind", ["uniform", "confusion"])
def test_planted_rows_are_wrong_and_no_others(kind):
    label, probs, _ = simulated(1000)
    before = label.copy()
    planted = plant_flips(label, 4, 0.1, np.random.default_rng(0), kind, probs)
    np.testing.assert_array_equal(label, before)
    assert len(planted.rows) == planted.mask.sum() == 100
    assert (planted.label[planted.rows] != label[planted.rows]).all()
    np.testing.assert_array_equal(planted.label[~planted.mask], label[~planted.mask])


def test_confusion_draws_what_the_model_sees():
    label = np.zeros(2000, dtype=np.int64)
    probs = np.tile([0.5, 0.45, 0.05, 0.0], (2000, 1))
    planted = plant_flips(label, 4, 0.5, np.random.default_rng(0), "confusion", probs)
    share = np.bincount(planted.label[planted.rows], minlength=4) / 1000
    np.testing.assert_allclose(share, [0, 0.9, 0.1, 0], atol=0.03)


def test_pattern_draws_what_labels_like_it_are_mistaken_for():
    label = np.repeat([0, 1], 1000)
    table = np.array([[0.8, 0.15, 0.05], [0.0, 0.9, 0.1], [0.3, 0.3, 0.4]])
    planted = plant_flips(label, 3, 0.5, np.random.default_rng(0), "pattern", table)
    first, second = (planted.label[planted.rows][label[planted.rows] == k] for k in (0, 1))
    assert (first == 1).mean() == pytest.approx(0.75, abs=0.05)
    assert (second == 2).mean() > 0.99


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 0.0}, "above 0"),
        ({"share": 0.6}, "0.5"),
        ({"kind": "odd"}, "unknown kind"),
        ({"kind": "confusion"}, "probabilities"),
        ({"kind": "pattern"}, "probabilities"),
    ],
)
def test_wrong_use_is_refused(options, message):
    settings = {"share": 0.1, "kind": "uniform"} | options
    with pytest.raises(ConfigError, match=message):
        plant_flips(np.zeros(10, dtype=np.int64), 3, rng=np.random.default_rng(0), **settings)
