import numpy as np
import pytest
from simulated_arrays import simulated

from labelclean.calibration.judgement import judge
from labelclean.calibration.noise_model import noise_model
from labelclean.errors import DataError

NAMES = ("ant", "bee", "cat", "dog")


def asymmetric(rate=0.4, count=6000):
    """ant is given as bee; nothing else is wrong."""
    rng = np.random.default_rng(0)
    _, probs, true = simulated(count, 4, 0.0, inverse_temperature=6.0)
    label = np.where((true == 0) & (rng.random(count) < rate), 1, true)
    matrix = np.eye(4)
    matrix[0] = [1 - rate, rate, 0, 0]
    logits = np.log(probs @ matrix) + 0.5 * rng.standard_normal((count, 4))
    return label, np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), true


def test_rates_and_matrix():
    label, probs, true = simulated(6000, 4, 0.2)
    model = noise_model(judge(label, probs), label, NAMES)
    real = np.array([(label[true == c] != c).mean() for c in range(4)])
    np.testing.assert_allclose(1 - np.diag(model.transition), real, atol=0.05)
    np.testing.assert_allclose(model.transition.sum(axis=1), 1, atol=1e-9)
    wrong = np.array([(true[label == c] != c).mean() for c in range(4)])
    np.testing.assert_allclose(model.class_rate, wrong, atol=0.05)
    assert (model.class_interval[:, 0] <= model.class_rate).all()
    assert (model.class_interval[:, 1] >= model.class_rate).all()
    assert "given as" not in " ".join(model.diagnosis)


def test_confused_pairs_are_named():
    label, probs, _ = asymmetric()
    model = noise_model(judge(label, probs), label, NAMES)
    assert "ant given as bee" in " ".join(model.diagnosis)
    assert model.transition[0, 1] == pytest.approx(0.4, abs=0.05)


def test_duplicates_are_mentioned_and_clean_data_is_left_alone():
    label, probs, _ = simulated(rate=0.0, inverse_temperature=7.0)
    model = noise_model(judge(label, probs), label, NAMES, conflicts=4)
    words = " ".join(model.diagnosis)
    assert "4 of 3000 rows have a near-identical twin" in words
    assert "may as well all be right" in words


def test_a_class_without_rows_has_no_rate():
    label, probs, _ = simulated()
    keep = label != 3
    model = noise_model(judge(label[keep], probs[keep]), label[keep], NAMES)
    assert np.isnan(model.class_rate[3])


def test_no_estimate_is_not_described():
    label = np.arange(400) % 4
    with pytest.raises(DataError, match="no noise estimate"):
        noise_model(judge(label, np.full((400, 4), 0.25)), label, NAMES)
