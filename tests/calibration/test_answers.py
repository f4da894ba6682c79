"""Probabilities corrected by answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from labelclean.calibration.answers import Recalibration, recalibrate


def logit(p):
    return np.log(p / (1 - p))


def bent(p, shift, slope):
    return 1 / (1 + np.exp(-(shift + slope * logit(p))))


def test_no_answers_change_nothing():
    change = recalibrate(np.zeros(0), np.zeros(0, bool))
    p = np.linspace(0.001, 0.999, 50)
    np.testing.assert_allclose(change(p), p, atol=1e-9)
    assert np.isnan(change(np.array([np.nan]))).all()
    assert change(np.array([0.0, 1.0])).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(("shift", "slope"), [(0.0, 1.0), (-1.5, 1.0), (0.5, 0.6), (0.0, 1.6)])
def test_answers_teach(shift, slope):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, 20_000)
    wrong = rng.random(len(p)) < bent(p, shift, slope)
    change = recalibrate(p, wrong)
    assert change.shift == pytest.approx(shift, abs=0.1)
    assert change.slope == pytest.approx(slope, abs=0.1)


def test_looking_at_the_most_suspect_rows_first_does_not_bias_it():
    rng = np.random.default_rng(1)
    p = rng.beta(0.5, 2, 40_000)
    p = np.clip(p, 0.001, 0.999)
    wrong = rng.random(len(p)) < bent(p, -1.0, 1.0)
    top = np.argsort(-p)[:8000]
    change = recalibrate(p[top], wrong[top])
    assert change(p).mean() == pytest.approx(wrong.mean(), abs=0.01)
    assert abs(p.mean() - wrong.mean()) > 0.05


@given(
    arrays(np.float64, st.shared(st.integers(1, 60), key="n"), elements=st.floats(0, 1)),
    arrays(np.bool_, st.shared(st.integers(1, 60), key="n")),
)
def test_the_order_stays(p, wrong):
    change = recalibrate(p, wrong)
    assert isinstance(change, Recalibration)
    after = change(np.linspace(0, 1, 101))
    assert np.isfinite(after).all()
    assert (np.diff(after[1:-1]) >= 0).all()
    assert ((after >= 0) & (after <= 1)).all()
