import numpy as np

from labelclean.benchmark.rivals import aum_answer


def test_the_area_under_the_margin_flags_rows_over_whose_epochs_another_class_led():
    margin = np.array([[1.0, -2.0, 0.5, -1.0], [3.0, -1.0, -1.5, 2.0]])
    answer = aum_answer(margin)
    np.testing.assert_allclose(answer.suspicion, [-2, 1.5, 0.5, -0.5])
    assert answer.flagged.tolist() == [False, True, True, False]
    assert answer.noise_rate == 0.5
