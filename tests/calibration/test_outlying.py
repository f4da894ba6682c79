"""Pictures of none of the classes count as wrong labels where flips explain too little."""

from dataclasses import replace

import numpy as np
import pytest
from simulated_arrays import simulated

from labelclean.calibration.judgement import judge
from labelclean.calibration.outlying import with_outliers


@pytest.fixture(scope="module")
def scene():
    label, probs, _ = simulated(1500)
    return label, judge(label, probs)


def scaled(judgement, rate):
    """The judgement of a data set in which so many labels are wrong."""
    p_error = judgement.p_error * (rate / judgement.p_error.mean())
    return replace(judgement, p_error=p_error, noise_rate=rate)


def odd_rows(count, share):
    p_outlier = np.zeros(count)
    p_outlier[: int(share * count)] = 0.9
    return p_outlier


def test_rows_that_fit_no_class_are_raised_and_keep_their_label(scene):
    label, found = scene
    before, odd = scaled(found, 0.01), odd_rows(len(label), 0.05)
    after = with_outliers(before, label, odd)
    np.testing.assert_allclose(after.p_error, np.maximum(before.p_error, odd))
    assert after.noise_rate == pytest.approx(after.p_error.mean())
    assert after.interval[1] >= before.interval[1]
    raised = odd > before.p_error
    assert raised.sum() > 50
    assert (after.suggested[raised] == label[raised]).all()
    np.testing.assert_allclose(after.p_suggested[raised], 0.1, atol=1e-6)
    np.testing.assert_array_equal(after.log_odds[~raised], before.log_odds[~raised])
    np.testing.assert_allclose(after.log_odds[raised], np.log(9), rtol=1e-5)
    assert (after.p_none[raised] >= 0.9 - 1e-6).all()
    assert "none of the classes" in after.notes[-1]


@pytest.mark.parametrize(("rate", "share"), [(0.2, 0.05), (0.001, 0.05), (0.01, 0.001)])
def test_they_add_nothing_where_flips_explain_enough_or_labels_may_all_be_right(scene, rate, share):
    label, found = scene
    before = scaled(found, rate)
    assert with_outliers(before, label, odd_rows(len(label), share)) is before


def test_verified_rows_and_unknown_probabilities_change_nothing(scene):
    label, found = scene
    before, odd = scaled(found, 0.01), odd_rows(len(label), 0.05)
    assert with_outliers(before, label, odd, odd > 0) is before
    assert with_outliers(before, label, None) is before
    odd[0] = np.nan
    assert with_outliers(before, label, odd) is before
