"""Fused opinions under a transition matrix: arithmetic, invariants, and planted noise."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from labelclean.calibration.fused import (
    fuse_posteriors,
    improve_transition,
    judge_fused,
    responsibilities,
    smoothed_transition,
)


def scene(kind="symmetric", rate=0.2, count=4000, size=5, sure=3.0, seed=0):
    """Draw true classes, opinions about them, and given labels flipped by a matrix."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, size, count)
    # A shift of `sure` in unit noise: the posterior is the softmax of sure times what is seen.
    logits = sure * (rng.normal(0, 1, (count, size)) + sure * np.eye(size)[true])
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    matrix = (1 - rate) * np.eye(size)
    if kind == "pair":
        matrix += rate * np.roll(np.eye(size), 1, axis=1)
    else:
        matrix += rate / (size - 1) * (1 - np.eye(size))
    given = (matrix[true].cumsum(axis=1) < rng.random((count, 1))).sum(axis=1)
    return true, given.astype(np.int64), probs, matrix


def test_fusion_is_the_normalised_geometric_mean():
    one, two = np.array([[0.8, 0.2]]), np.array([[0.5, 0.5]])
    expected = np.sqrt((one + 1e-4) * (two + 1e-4))
    np.testing.assert_allclose(fuse_posteriors([one, two]), expected / expected.sum(), rtol=1e-6)


def test_memberships_are_bayes():
    table = np.array([[0.9, 0.1], [0.4, 0.6]])
    got = responsibilities(np.array([0, 1]), np.array([[0.3, 0.7], [0.5, 0.5]]), table)
    np.testing.assert_allclose(got[0], [0.27 / 0.55, 0.28 / 0.55])
    np.testing.assert_allclose(got[1], [0.05 / 0.35, 0.30 / 0.35])


@pytest.mark.parametrize("kind", ["symmetric", "pair"])
def test_the_transition_matrix_is_recovered(kind):
    _, given, probs, matrix = scene(kind)
    start = np.full((5, 5), 0.05) + 0.75 * np.eye(5)
    found = improve_transition(given, probs, start, 20).matrix()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found, matrix, atol=0.03)


def test_hedging_keeps_the_rate_and_leaves_no_pair_impossible():
    _, given, probs, _ = scene("pair")
    found = improve_transition(given, probs, np.full((5, 5), 0.05) + 0.75 * np.eye(5), 20)
    safe = smoothed_transition(found, 0.1)
    before, after = found.matrix(), safe.matrix()
    assert safe.eps == pytest.approx(found.eps, abs=1e-9)
    np.testing.assert_allclose(after.sum(axis=1), 1)
    off = ~np.eye(5, dtype=bool)
    assert after[off].min() > 0.1 * found.eps / 4 * 0.9
    assert np.abs(after - before).max() < 0.03
    assert smoothed_transition(found, 0.0).matrix() == pytest.approx(before)


@pytest.mark.parametrize("kind", ["symmetric", "pair"])
@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_planted_noise_is_ranked_and_counted(kind, rate):
    true, given, probs, _ = scene(kind, rate)
    transition = improve_transition(given, probs, np.full((5, 5), 0.05) + 0.75 * np.eye(5), 20)
    found = judge_fused(given, probs.astype(np.float32), transition)
    wrong = given != true
    assert roc_auc_score(wrong, found.log_odds) > 0.95
    assert found.noise_rate == pytest.approx(wrong.mean(), abs=0.03)
    assert found.interval[0] <= wrong.mean() <= found.interval[1]
    sure = (found.suggested != given) & (found.p_suggested >= 0.95)
    assert (found.suggested[sure] == true[sure]).mean() > 0.93


def test_clean_labels_stay_nearly_untouched():
    true, _, probs, _ = scene(rate=0.0)
    transition = improve_transition(true, probs, np.full((5, 5), 0.05) + 0.75 * np.eye(5), 20)
    found = judge_fused(true, probs.astype(np.float32), transition)
    assert found.noise_rate is not None
    assert found.noise_rate < 0.02
    assert found.interval[0] == 0


def test_verified_rows_are_known_to_be_right():
    _, given, probs, _ = scene()
    verified = np.zeros(len(given), bool)
    verified[::7] = True
    transition = improve_transition(given, probs, 0.05 + 0.75 * np.eye(5), 10, verified)
    found = judge_fused(given, probs.astype(np.float32), transition, verified)
    assert (found.p_error[verified] == 0).all()
    assert (found.suggested[verified] == given[verified]).all()
    assert np.isneginf(found.log_odds[verified]).all()


def test_opinions_that_know_nothing_give_no_estimate():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 500)
    given = rng.integers(0, 4, 500)
    transition = improve_transition(given, probs, 0.05 + 0.8 * np.eye(4), 5)
    assert judge_fused(given, probs.astype(np.float32), transition).noise_rate is None
