"""How far a pattern of flips is believed: the labels choose, and a row never feeds itself."""

import numpy as np
import pytest
from scipy.special import softmax

from labelclean.calibration.pattern import (
    choose_share,
    cross_fitted,
    even_matrix,
    fit_pattern,
    start_matrix,
)


def flipped(matrix, seed=0, count=4000, sharp=4.0):
    size = len(matrix)
    rng = np.random.default_rng(seed)
    true = rng.integers(0, size, count)
    label = (rng.random(count)[:, None] > matrix.cumsum(axis=1)[true]).sum(axis=1)
    probs = softmax(
        sharp * (rng.standard_normal((count, size)) + sharp * np.eye(size)[true]), axis=1
    )
    return label.astype(np.int64), probs, rng.integers(0, 5, count)


def one_way(size=5, rate=0.3):
    """Every class is taken for the next one."""
    return (1 - rate) * np.eye(size) + rate * np.roll(np.eye(size), 1, axis=1)


def test_a_pattern_is_believed_and_even_flips_are_not_given_one():
    assert choose_share(*flipped(one_way())) == 0.0
    assert choose_share(*flipped(even_matrix(5, 0.8))) == 1.0


def test_the_matrix_comes_back():
    label, probs, _ = flipped(one_way(), count=20000)
    found = fit_pattern(label, probs, 0.0, start_matrix(5), steps=60)
    assert found == pytest.approx(one_way(), abs=0.02)
    label, probs, _ = flipped(even_matrix(5, 0.7), count=20000)
    found = fit_pattern(label, probs, 1.0, start_matrix(5), steps=60)
    assert found == pytest.approx(even_matrix(5, 0.7), abs=0.02)


def test_a_fold_does_not_feed_its_own_matrix():
    label, probs, fold = flipped(even_matrix(5, 0.9), count=1000)
    before = cross_fitted(label, probs, fold, 0.0, start_matrix(5))
    changed = label.copy()
    changed[fold == 2] = 0
    after = cross_fitted(changed, probs, fold, 0.0, start_matrix(5), steps=1)
    first = cross_fitted(label, probs, fold, 0.0, start_matrix(5), steps=1)
    assert np.array_equal(after[2], first[2])
    assert not np.allclose(after[1], first[1])
    assert before.sum(axis=2) == pytest.approx(np.ones((5, 5)))
