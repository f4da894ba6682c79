import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelclean.calibration.cut import expected_f1_cut, expected_precision


def test_values_by_hand():
    p = np.array([0.9, 0.6, 0.3, 0.0])
    np.testing.assert_allclose(expected_precision(p), [0.9, 0.75, 0.6, 0.45])
    assert expected_f1_cut(p) == 2  # F1 is 1.8 / 2.8, 3 / 3.8, 3.6 / 4.8, 3.6 / 5.8


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_the_cut_is_a_threshold_at_half_its_f1(values):
    p = np.sort(np.array(values))[::-1]
    size = expected_f1_cut(p)
    if p[0] < 1e-6:
        return
    f1 = 2 * np.cumsum(p) / (np.arange(1, len(p) + 1) + p.sum())
    best = f1.max()
    if not size:  # that there is no error at all is likelier than any cut is good
        assert np.prod(1 - p) >= best
        return
    assert f1[size - 1] >= best - 1e-12
    assert p[size - 1] >= best / 2 - 1e-9


def test_nothing_to_flag():
    assert expected_f1_cut(np.zeros(0)) == 0
    assert expected_f1_cut(np.zeros(5)) == 0


def test_where_all_labels_are_right_nothing_is_flagged():
    assert expected_f1_cut(np.full(1000, 1e-8)) == 0
    assert expected_f1_cut(np.array([0.9, *[1e-8] * 999])) == 1
    assert expected_f1_cut(np.array([0.04] * 50 + [0.01] * 50), least=0.02) <= 50
    assert expected_f1_cut(np.array([0.4] * 50), least=0.5) == 0
