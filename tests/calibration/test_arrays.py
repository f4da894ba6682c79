import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelclean.calibration.arrays import cheap_power, to_power
from labelclean.calibration.layout import lay_out, powered

TINY = np.finfo(np.float32).tiny


@pytest.mark.parametrize("power", [0.125, 0.3125, 0.5, 1.0, 2.0, 3.625, 4.0, 5.25, 8.0, 33.125])
def test_cheap_powers_are_powers(power):
    base = np.random.default_rng(0).uniform(1e-5, 1, (3, 4000)).astype(np.float32)
    base[0, :2] = 1e-5, 1
    want = base.astype(np.float64) ** power
    assert cheap_power(power) == power
    got = to_power(base, power).astype(np.float64)
    normal = want > 4 * TINY
    np.testing.assert_allclose(got[normal], want[normal], rtol=1e-5 * max(1, power / 4))
    assert (got >= TINY).all(), "numbers below the normal ones are slow to compute with"
    assert (got[~normal] < 8 * TINY).all()


def test_other_powers_take_the_long_way():
    base = np.random.default_rng(1).uniform(1e-5, 1, (2, 500)).astype(np.float32)
    want = base.astype(np.float64) ** 2.7
    np.testing.assert_allclose(to_power(base, 2.7), want, rtol=1e-5)


@pytest.mark.parametrize(
    ("power", "next_one"),
    [(3.7, 3.75), (5.01, 5.125), (2.06, 2.0625), (0.3, 0.3046875), (4.0, 4.0)],
)
def test_the_next_cheap_power(power, next_one):
    assert cheap_power(power) == next_one


@settings(max_examples=300, deadline=None)
@given(st.floats(0.01, 100))
def test_a_cheap_power_is_never_smaller_and_hardly_larger(power):
    cheap = cheap_power(power)
    assert power <= cheap <= power * (1 + 1 / 32)
    assert cheap_power(cheap) == cheap


@pytest.mark.parametrize("classes", [2, 10, 64, 65, 200])
@pytest.mark.parametrize("power", [2.5, 2.7])
def test_scoring_and_fitting_see_the_same_evidence(classes, power):
    rng = np.random.default_rng(classes)
    probs = rng.dirichlet(np.full(classes, 0.3), 300)
    label = rng.integers(0, classes, 300)
    layout = lay_out(label, probs)
    rows, entries, log_given = powered(label, probs, power)
    np.testing.assert_allclose(
        log_given, power * layout.of_given(layout.log_p), rtol=1e-4, atol=1e-5
    )
    want = np.exp(power * layout.log_p.astype(np.float64))
    np.testing.assert_allclose(entries, want, rtol=1e-4, atol=1e-30)
    np.testing.assert_allclose(rows.row_max(entries), 1, rtol=1e-6)
