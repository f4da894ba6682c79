"""The trained network beside held-out sources: believed as far as planted rows show."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import average_precision_score

from labelclean.calibration.fused import fuse_sources, judge_fused
from labelclean.calibration.planting import plant_flips
from labelclean.evidence.features import FeatureEvidence
from labelclean.evidence.network import likely_share, with_network
from labelclean.records.records import Records

COUNT, SIZE = 3000, 5
NOBODY = np.zeros(0, np.int64)


def scene(rate=0.1, seed=0):
    """True classes, given labels of which some are wrong, and the same with planted errors."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, SIZE, COUNT)
    wrong = rng.random(COUNT) < rate
    given = np.where(wrong, (true + rng.integers(1, SIZE, COUNT)) % SIZE, true)
    return rng, true, given, plant_flips(given, SIZE, 0.1, rng)


def posteriors(rng, true, sure, label=None, memory=0.0):
    """What a model says that knows `true` so well and has learnt part of `label` by heart."""
    logits = rng.standard_normal((COUNT, SIZE)) + sure * np.eye(SIZE)[true]
    if label is not None:
        logits += memory * np.eye(SIZE)[label]
    return softmax(logits, axis=1).astype(np.float32)


def records(label, probs):
    rows = np.arange(COUNT)
    others = probs.copy()
    others[rows, label] = 0
    margin = np.log(probs[rows, label]) - np.log(others.max(axis=1))
    return Records(label, probs, mean_probs=probs, margin=np.tile(margin, (3, 1)))


def evidence_of(held_out, given):
    fused, fusion = fuse_sources({"heads": held_out}, given, np.arange(COUNT) % 5)
    return FeatureEvidence(fused, fusion, None, np.zeros(COUNT), np.zeros((COUNT, 1), int), "cce")


def heard(seed=0, rate=0.1, sure=4.0, memory=0.0, strange=NOBODY):
    rng, true, given, planted = scene(rate, seed)
    before = evidence_of(posteriors(rng, true, 1.5), given)
    network = posteriors(rng, true, sure, given, memory)
    trial = posteriors(rng, true, sure, planted.label, memory)
    if len(strange):
        trial[strange] = softmax(rng.standard_normal((len(strange), SIZE)), axis=1)
    after = with_network(
        before, records(given, network), records(planted.label, trial), planted, strange
    )
    return true, given, before, after


def precision(true, given, evidence):
    found = judge_fused(given, evidence.fused, evidence.fusion)
    return average_precision_score(given != true, found.log_odds), found


def test_a_network_that_knows_more_ranks():
    true, given, before, after = heard()
    first, _ = precision(true, given, before)
    second, found = precision(true, given, after)
    assert second > first + 0.1
    assert found.noise_rate == pytest.approx((given != true).mean(), abs=0.02)
    assert 0.5 < after.fusion.weights["network"] < 1
    assert after.fusion.weights["heads"] < before.fusion.weights["heads"]
    assert after.quality["network"]["ap"] > after.quality["network"]["ap_without"] + 0.1
    np.testing.assert_array_equal(after.fusion.held_out, before.fused)


def test_a_network_that_learnt_labels_by_heart_does_not_spoil_what_was_known():
    true, given, before, after = heard(sure=0.0, memory=8.0)
    first, _ = precision(true, given, before)
    second, found = precision(true, given, after)
    assert second > first - 0.02
    assert found.noise_rate == pytest.approx((given != true).mean(), abs=0.06)


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.2])
def test_given_labels_are_counted_that_look_like_planted_ones(rate):
    true, given, _, after = heard(rate=rate, sure=5.0)
    assert after.fusion.learnt.rate == pytest.approx((given != true).mean(), abs=0.02)


def test_rows_that_fit_no_class_are_counted_where_scrambled_ones_look_alike():
    rng, true, given, planted = scene(0.0)
    lost = rng.random(COUNT) < 0.1
    free = np.setdiff1d(np.arange(COUNT), planted.rows)
    strange = np.sort(rng.choice(free, 200, replace=False))
    held_out = posteriors(rng, true, 2.5)
    noise = softmax(rng.standard_normal((COUNT, SIZE)), axis=1).astype(np.float32)
    held_out[lost] = noise[::-1][lost]
    before = evidence_of(held_out, given)
    network, trial = (posteriors(rng, true, 5.0) for _ in range(2))
    network[lost], trial[lost], trial[strange] = noise[lost], noise[::-1][lost], noise[strange]
    told = [
        with_network(before, records(given, network), records(planted.label, trial), planted, rows)
        for rows in (strange, NOBODY)
    ]
    kinds = [one.fusion.learnt.shares for one in told]
    assert [len(one) for one in kinds] == [2, 1]
    assert kinds[0].sum() == pytest.approx(lost.mean(), abs=0.03)
    found = judge_fused(given, told[0].fused, told[0].fusion)
    assert average_precision_score(lost, found.log_odds) > 0.8
    # What they are taken for instead is nothing to relabel without asking.
    assert ((found.suggested != given) & (found.p_suggested > 0.95) & lost).sum() == 0


def test_the_share_gives_planted_rows_their_class_back():
    rng, true, given, planted = scene(0.0)
    knows, knows_nothing = posteriors(rng, true, 4.0), posteriors(rng, true, 0.0)
    assert likely_share(knows_nothing, knows, given, planted) == 1.0
    assert likely_share(knows, knows_nothing, given, planted) == 0.0


def test_rows_that_were_planted_or_scrambled_do_not_hear_the_trial():
    strange = np.array([5, 6, 7])
    rng, true, given, planted = scene()
    strange = np.setdiff1d(strange, planted.rows)
    before = evidence_of(posteriors(rng, true, 1.5), given)
    network, trial = posteriors(rng, true, 4.0), posteriors(rng, true, 4.0)
    said = [
        with_network(
            before, records(given, network), records(planted.label, other), planted, strange
        )
        for other in (trial, trial[::-1].copy())
    ]
    shares = [one.fusion.weights["network"] for one in said]
    assert shares[0] > shares[1]
    misled = planted.mask.copy()
    misled[strange] = True
    again = with_network(
        before, records(given, network), records(planted.label, trial), planted, strange
    )
    np.testing.assert_array_equal(again.fused, said[0].fused)
    alone = with_network(
        before,
        records(given, network),
        records(planted.label, np.where(misled[:, None], trial, network)),
        planted,
        strange,
    )
    np.testing.assert_array_equal(alone.fused[misled], said[0].fused[misled])
    assert not np.allclose(alone.fused[~misled], said[0].fused[~misled])
