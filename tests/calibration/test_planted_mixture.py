"""What planted rows teach about wrong labels: slopes, shares, log-odds."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from labelclean.calibration.constants import JudgeConstants, varied_constants
from labelclean.calibration.planted_mixture import PlantedMixture, fit_planted_mixture

COUNT = 20000


def drawn(rate, seed=0, far=2.0):
    """Two signals, of which the first tells wrong labels by a shift in unit noise."""
    rng = np.random.default_rng(seed)
    wrong, planted = rng.random(COUNT) < rate, rng.random(COUNT) < 0.1
    wrong &= ~planted
    signals = rng.normal(0, 1, (COUNT, 2))
    signals[:, 0] += far * (wrong | planted)
    return signals, wrong, planted


@pytest.fixture(autouse=True)
def no_ridge():
    with varied_constants(replace(JudgeConstants(), planted_ridge=1e-7)):
        yield


def learnt(signals, planted, believed=None, convicted=None):
    everybody, nobody = np.ones(len(signals), bool), np.zeros(len(signals), bool)
    return fit_planted_mixture(
        signals,
        [planted],
        everybody if believed is None else believed,
        nobody if convicted is None else convicted,
        [np.ones(signals.shape[1], bool)],
    )


def test_without_wrong_labels_the_log_ratio_is_that_of_the_shift():
    signals, _, planted = drawn(0.0)
    found = learnt(signals, planted)
    # log N(x - 2) - log N(x) = 2 x - 2
    assert found.slopes[0] == pytest.approx([2.0, 0.0], abs=0.1)
    assert found.biases[0] == pytest.approx(-2.0, abs=0.15)
    assert found.rate < 0.005
    assert expit(found.log_odds(signals))[~planted].mean() < 0.005


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_wrong_labels_are_counted_and_told(rate):
    signals, wrong, planted = drawn(rate, far=4.0)
    believed = signals[:, 0] < 2.5
    found = learnt(signals, planted, believed)
    rest = ~planted
    assert found.rate == pytest.approx(wrong[rest].mean(), abs=0.01)
    p = expit(found.log_odds(signals))[rest]
    assert ((p > 0.5) == wrong[rest]).mean() > 0.97
    assert p.mean() == pytest.approx(wrong[rest].mean(), abs=0.02)


def test_convicted_rows_are_no_examples_of_right_labels():
    signals, wrong, planted = drawn(0.2)
    without = learnt(signals, planted)
    found = learnt(signals, planted, convicted=wrong)
    assert found.slopes[0, 0] > without.slopes[0, 0]
    assert found.least == pytest.approx(without.rate, abs=1e-6)
    assert found.least < found.rate
    assert found.rate == pytest.approx(wrong[~planted].mean(), abs=0.03)


def test_a_signal_that_knows_nothing_of_a_kind_is_not_asked_about_it():
    rng = np.random.default_rng(0)
    signals, _, planted = drawn(0.0)
    other = (rng.random(COUNT) < 0.1) & ~planted
    signals[other, 1] += 3
    with varied_constants(replace(JudgeConstants(), planted_ridge=1e-7, kind_gain=-np.inf)):
        found = fit_planted_mixture(
            signals,
            [planted, other],
            np.ones(COUNT, bool),
            np.zeros(COUNT, bool),
            [np.array([True, True]), np.array([False, True])],
        )
    assert found.slopes[1, 0] == 0
    assert found.slopes[1, 1] == pytest.approx(3, abs=0.2)
    assert found.slopes[0, 1] < 0.1
    assert (found.shares < 0.005).all()


def test_believed_rows_that_are_wrong_are_taken_out():
    # r = f_1 / f_obs with f_obs = .75 f_0 + .25 f_1: at r = 3, f_1 / f_0 = 3 (.75) / (1 - .75).
    mixture = PlantedMixture(
        np.array([[1.0]]), np.zeros(1), np.array([0.2]), np.array([0.25]), least=0.1
    )
    odds = mixture.log_odds(np.array([[np.log(3.0)]]))
    assert odds[0] == pytest.approx(np.log(0.2 / 0.8 * 9), abs=1e-4)


def test_planted_rows_alone_are_learnt_from_even_where_nobody_is_believed():
    signals, _, planted = drawn(0.0)
    found = learnt(signals, planted, believed=planted)
    assert found.slopes[0, 0] == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("present", [True, False])
def test_a_kind_is_heard_only_where_rows_are_of_it(present):
    rng = np.random.default_rng(1)
    signals, wrong, planted = drawn(0.1, far=4.0)
    other = (rng.random(COUNT) < 0.06) & ~planted
    signals[other, 1] += 4
    hidden = (rng.random(COUNT) < 0.05) & ~planted & ~other & present
    signals[hidden, 1] += 4
    found = fit_planted_mixture(
        signals,
        [planted, other],
        ~wrong & ~hidden,
        np.zeros(COUNT, bool),
        [np.ones(2, bool), np.array([False, True])],
    )
    assert len(found.shares) == 1 + present
    if present:
        assert found.shares[1] == pytest.approx(0.05, abs=0.01)
