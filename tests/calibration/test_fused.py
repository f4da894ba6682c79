"""A pool of posteriors, judged: invariants, planted noise, rows that fit no class."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from labelclean.calibration.fused import fuse_sources, held_out_odds, judge_fused
from labelclean.calibration.pattern import responsibilities
from labelclean.calibration.planted_mixture import PlantedMixture


def scene(kind="symmetric", rate=0.2, count=4000, size=5, sure=3.0, seed=0):
    """Draw true classes, posteriors of them, and given labels flipped by a matrix."""
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


def judged(given, probs, verified=None, **more):
    fold = np.arange(len(given)) % 5
    fused, fusion = fuse_sources({"one": probs}, given, fold, verified=verified, **more)
    return judge_fused(given, fused, fusion, verified), fusion


def test_responsibilities_are_bayes():
    table = np.array([[0.9, 0.1], [0.4, 0.6]])
    got = responsibilities(np.array([0, 1]), np.array([[0.3, 0.7], [0.5, 0.5]]), table)
    np.testing.assert_allclose(got[0], [0.27 / 0.55, 0.28 / 0.55])
    np.testing.assert_allclose(got[1], [0.05 / 0.35, 0.30 / 0.35])


@pytest.mark.parametrize("kind", ["symmetric", "pair"])
@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_planted_noise_is_ranked_and_counted(kind, rate):
    true, given, probs, _ = scene(kind, rate)
    found, fusion = judged(given, probs)
    wrong = given != true
    assert fusion.share == (0.0 if kind == "pair" else 1.0)
    assert roc_auc_score(wrong, found.log_odds) > 0.95
    assert found.noise_rate == pytest.approx(wrong.mean(), abs=0.03)
    assert found.interval[0] <= wrong.mean() <= found.interval[1]
    sure = (found.suggested != given) & (found.p_suggested >= 0.95)
    assert (found.suggested[sure] == true[sure]).mean() > 0.93


def test_clean_labels_are_left_alone():
    true, _, probs, _ = scene(rate=0.0)
    found, _ = judged(true, probs)
    assert found.noise_rate < 0.005
    assert found.interval[0] == 0
    assert (found.p_error > 0.5).mean() < 0.005


def test_verified_rows_are_known_to_be_right():
    _, given, probs, _ = scene()
    verified = np.zeros(len(given), bool)
    verified[::7] = True
    found, _ = judged(given, probs, verified)
    assert (found.p_error[verified] == 0).all()
    assert (found.suggested[verified] == given[verified]).all()
    assert np.isneginf(found.log_odds[verified]).all()


def test_rows_far_from_every_class_are_suspected_and_keep_their_label():
    true, given, probs, _ = scene(rate=0.1)
    strange = np.arange(len(given)) % 50 == 0
    probs[strange] = 0.1
    probs[strange, given[strange]] = 0.6
    near = np.random.default_rng(1).random(len(given))
    found, _ = judged(given, probs, distance=near + 9 * strange)
    without, _ = judged(given, probs)
    assert found.p_none[strange].mean() > 3 * found.p_none[~strange & (given == true)].mean()
    assert roc_auc_score(strange, found.p_none) > 0.8
    assert found.p_error[strange].mean() > without.p_error[strange].mean()


def learnt_from(least, most, slopes=(1.0, 0.0)):
    return PlantedMixture(
        np.array([slopes]), np.zeros(1), np.array([most]), np.zeros(1), least=least
    )


def test_the_rate_lies_between_what_planted_rows_support_at_least_and_at_most():
    _, given, probs, _ = scene(rate=0.02)
    fused, fusion = fuse_sources({"one": probs}, given, np.arange(len(given)) % 5)
    nothing = np.zeros((len(given), 1), np.float32)
    more = replace(fusion, learnt=learnt_from(0.2, 0.3), suspicions=nothing)
    assert judge_fused(given, fused, more).noise_rate == pytest.approx(0.25)


def test_suspicions_of_a_network_rank_as_planted_rows_say():
    true, given, probs, _ = scene(rate=0.1, sure=1.0)
    fused, fusion = fuse_sources({"one": probs}, given, np.arange(len(given)) % 5)
    wrong = given != true
    suspicion = (3 * wrong + np.random.default_rng(1).normal(0, 1, len(given))).astype(np.float32)
    told = replace(fusion, learnt=learnt_from(0.1, 0.1, (1.0, 3.0)), suspicions=suspicion[:, None])
    before, after = (judge_fused(given, fused, one) for one in (fusion, told))
    aucs = [roc_auc_score(wrong, found.log_odds) for found in (before, after)]
    assert aucs[1] > aucs[0] + 0.05
    deaf = replace(told, learnt=learnt_from(0.1, 0.1, (1.0, 0.0)))
    same = judge_fused(given, fused, deaf)
    assert roc_auc_score(wrong, same.log_odds) == pytest.approx(aucs[0], abs=1e-3)


def test_suggestions_are_the_less_sure_the_fewer_rows_were_flipped_so():
    true, given, probs, _ = scene(rate=0.1)
    # Class 0 is often called 1, class 2 hardly ever called 3.
    rng = np.random.default_rng(3)
    given = true.copy()
    often, seldom = np.flatnonzero(true == 0), np.flatnonzero(true == 2)
    given[often[rng.random(len(often)) < 0.4]] = 1
    given[seldom[:3]] = 3
    fused, fusion = fuse_sources({"one": probs}, given, np.arange(len(given)) % 5)
    found = judge_fused(given, fused, replace(fusion, share=0.0))
    moved = found.suggested != given
    many = moved & (given == 1) & (found.suggested == 0)
    few = moved & (given == 3) & (found.suggested == 2)
    gap = 1 - found.p_suggested
    assert many.sum() > 20
    assert not few.any() or gap[few].min() > 2 * np.median(gap[many])


def test_held_out_odds_of_other_labels():
    _, given, probs, _ = scene(rate=0.1)
    fused, fusion = fuse_sources({"one": probs}, given, np.arange(len(given)) % 5)
    own = held_out_odds(given, given, fused, fusion)
    flipped = given.copy()
    flipped[::10] = (flipped[::10] + 1) % 5
    odds = held_out_odds(flipped, given, fused, fusion)
    kept = np.arange(len(given)) % 10 > 0
    np.testing.assert_array_equal(odds[kept], own[kept])
    assert odds[::10].mean() > own[::10].mean() + 3


def test_posteriors_that_know_nothing_give_no_estimate():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 500)
    found, _ = judged(rng.integers(0, 4, 500), probs)
    assert found.noise_rate is None


def test_flips_that_follow_the_models_confusions_are_told_from_even_ones():
    rng = np.random.default_rng(0)
    size, count = 6, 6000
    true = rng.integers(0, size, count)
    like = np.eye(size) + 0.5 * np.kron(np.eye(size // 2), [[0, 1], [1, 0]])
    # Classes in pairs that look alike; all means have one length, so this is the true posterior.
    logits = 3 * (rng.normal(0, 1, (count, size)) + 3 * like[true]) @ like.T
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    flip, found = rng.random(count) < 0.2, []
    for given in (true ^ 1, (true + rng.integers(1, size, count)) % size):
        found.append(judged(np.where(flip, given, true), probs)[0].fitted.alignment)
    assert found[0] > 0.7
    assert found[1] < 0.5
