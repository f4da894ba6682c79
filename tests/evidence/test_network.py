"""The trained network beside held-out sources: believed as far as planted rows show."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import average_precision_score

from labelclean.calibration.fused import fuse_sources
from labelclean.calibration.planting import plant_flips
from labelclean.calibration.pool import pool
from labelclean.evidence.features import FeatureEvidence
from labelclean.evidence.network import weigh_network, with_network

COUNT, SIZE = 3000, 5


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


def test_a_network_that_knows_more_is_believed():
    rng, true, _, planted = scene()
    weight = weigh_network(posteriors(rng, true, 1.5), posteriors(rng, true, 4.0), planted)
    assert weight.share >= 0.5
    assert weight.precision[weight.share] > weight.precision[0.0] + 0.05


def test_a_network_that_learnt_labels_by_heart_is_not():
    rng, true, _, planted = scene()
    memorised = posteriors(rng, true, 0.0, planted.label, memory=6.0)
    weight = weigh_network(posteriors(rng, true, 3.0), memorised, planted)
    assert (weight.share, weight.rate) == (0.0, 0.0)


@pytest.mark.parametrize("rate", [0.02, 0.2])
def test_given_labels_are_counted_that_look_like_planted_ones(rate):
    rng, true, given, planted = scene(rate)
    weight = weigh_network(posteriors(rng, true, 1.5), posteriors(rng, true, 5.0), planted)
    assert weight.rate == pytest.approx((given != true).mean(), abs=0.03)


def evidence_of(held_out, given):
    fused, fusion = fuse_sources({"heads": held_out}, given, np.arange(COUNT) % 5)
    return FeatureEvidence(fused, fusion, None, np.zeros(COUNT), np.zeros((COUNT, 1), int), "cce")


def test_what_the_network_says_ranks_and_what_it_never_saw_counts():
    rng, true, given, planted = scene()
    before = evidence_of(posteriors(rng, true, 1.5), given)
    network, trial = posteriors(rng, true, 4.0), posteriors(rng, true, 4.0)
    after = with_network(before, network, trial, planted)
    rows, wrong = np.arange(COUNT), given != true
    found = [average_precision_score(wrong, -one.fused[rows, given]) for one in (before, after)]
    assert found[1] > found[0] + 0.05
    np.testing.assert_array_equal(after.fusion.held_out, before.fused)
    assert after.fusion.weights["network"] > 0
    assert after.fusion.weights["heads"] < before.fusion.weights["heads"]
    assert set(after.quality["network"]) == {"ap", "ap_without"}


def test_rows_that_were_planted_do_not_hear_the_trial():
    rng, true, given, planted = scene()
    before = evidence_of(posteriors(rng, true, 1.5), given)
    network, trial = posteriors(rng, true, 4.0), posteriors(rng, true, 4.0)
    after = with_network(before, network, trial, planted)
    shares = np.array([1 - after.fusion.weights["network"], after.fusion.weights["network"]])
    alone = pool([before.fused, network], shares)
    both = pool([before.fused, (network + trial) / 2], shares)
    mask = planted.mask
    np.testing.assert_array_equal(after.fused[mask], alone[mask])
    np.testing.assert_array_equal(after.fused[~mask], both[~mask])
    assert not np.allclose(after.fused[mask], both[mask])
