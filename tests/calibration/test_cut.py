import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelclean.calibration.cut import cut_curve, expected_f1_cut


def test_values_by_hand():
    p = np.array([0.9, 0.6, 0.3, 0.0])
    curve = cut_curve(p)
    np.testing.assert_allclose(curve.precision, [0.9, 0.75, 0.6, 0.45])
    np.testing.assert_allclose(curve.recall, [0.5, 1.5 / 1.8, 1, 1])
    np.testing.assert_allclose(curve.f1, [1.8 / 2.8, 3 / 3.8, 3.6 / 4.8, 3.6 / 5.8])
    assert expected_f1_cut(p) == 2


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_the_cut_is_a_threshold_at_half_its_f1(values):
    p = np.sort(np.array(values))[::-1]
    size = expected_f1_cut(p)
    if p[0] < 1e-6:
        return
    best = cut_curve(p).f1.max()
    assert cut_curve(p).f1[size - 1] >= best - 1e-12
    assert p[size - 1] >= best / 2 - 1e-9


def test_nothing_to_flag():
    assert expected_f1_cut(np.zeros(0)) == 0
    assert expected_f1_cut(np.zeros(5)) == 0
