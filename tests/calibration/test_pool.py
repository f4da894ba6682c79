"""The log-linear pool: arithmetic, and weights that the labels choose."""

import numpy as np
import pytest
from scipy.special import softmax

from labelclean.calibration.pattern import even_matrix
from labelclean.calibration.pool import likely_weights, pool


def noisy(seed=0, count=4000, size=5, rate=0.2):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, size, count)
    label = np.where(rng.random(count) < rate, (true + rng.integers(1, size, count)) % size, true)
    logits = rng.standard_normal((count, size)) + 3 * np.eye(size)[true]
    return rng, true, label, softmax(logits, axis=1)


def test_the_pool_is_the_weighted_product():
    one, other = np.array([[0.9, 0.1]]), np.array([[0.2, 0.8]])
    product = (0.9001**0.5) * (0.2001**2), (0.1001**0.5) * (0.8001**2)
    expected = np.array(product) / sum(product)
    assert pool([one, other], np.array([0.5, 2.0]))[0] == pytest.approx(expected, rel=1e-6)


def test_a_source_that_knows_nothing_gets_no_weight():
    rng, _, label, good = noisy()
    noise = softmax(rng.standard_normal(good.shape), axis=1)
    weights = likely_weights([good, noise], label, even_matrix(5, 0.8), np.full(2, 0.5))
    assert weights[0] > 0.5
    assert weights[1] < 0.1


def test_weights_are_temperatures_too():
    _, _, label, good = noisy()
    loud = softmax(4 * np.log(good), axis=1)
    (weight,) = likely_weights([loud], label, even_matrix(5, 0.8), np.ones(1))
    # Classes are three standard deviations apart, so the truth is softmax(3 logits).
    assert weight == pytest.approx(3 / 4, abs=0.1)


def test_twins_share_their_weight():
    _, _, label, good = noisy()
    weights = likely_weights([good, good.copy()], label, even_matrix(5, 0.8), np.array([0.9, 0.1]))
    assert weights[0] == pytest.approx(weights[1], rel=1e-6)
