"""Evidence from features: planted noise is found, planting changes nothing, a loss is chosen."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score, roc_auc_score

from labelclean.benchmark.noise import inject
from labelclean.calibration.fused import judge_fused
from labelclean.calibration.pattern import even_matrix
from labelclean.evidence.features import (
    ATTENTION_LOSS,
    CANDIDATE_LOSSES,
    PreparedFeatures,
    gather_feature_evidence,
)

FEW = {name: CANDIDATE_LOSSES[name] for name in ("cce", "gce")}


@pytest.fixture(scope="module")
def digits():
    features, true = load_digits(return_X_y=True)
    features = (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-6)
    return features.astype(np.float32), true.astype(np.int64)


def bench_of(features, **more):
    weight = np.ones(len(features), np.float32)
    return PreparedFeatures(features, 10, weight=weight, seed=0, **more)


@pytest.fixture(scope="module")
def noisy(digits):
    features, true = digits
    planted = inject("symmetric", true, 10, 0.2, np.random.default_rng(0)).label
    bench = bench_of(features)
    return true, planted, bench, gather_feature_evidence(bench, planted, FEW)


def test_wrong_labels_are_found_and_counted(noisy):
    true, given, _, evidence = noisy
    wrong = given != true
    found = judge_fused(given, evidence.fused, evidence.fusion)
    assert average_precision_score(wrong, found.p_error) > 0.92
    assert found.noise_rate == pytest.approx(wrong.mean(), abs=0.03)
    moved = np.flatnonzero(found.suggested != given)
    surest = moved[np.argsort(-found.p_suggested[moved])][:200]
    assert (found.suggested[surest] == true[surest]).mean() > 0.95


def test_every_signal_is_measured_and_points_the_right_way(noisy):
    true, given, _, evidence = noisy
    wrong, rows = given != true, np.arange(len(given))
    assert set(evidence.quality) == {
        *FEW, ATTENTION_LOSS, "attention", "target_given", "neighbour_agreement",
    }  # fmt: skip
    assert all(0.55 < entry["auroc"] <= 1 for entry in evidence.quality.values())
    assert evidence.loss in FEW
    assert evidence.attention.attention is not None
    assert evidence.attention.target is not None
    assert roc_auc_score(wrong, -evidence.attention.attention[-1]) > 0.55
    assert roc_auc_score(wrong, -evidence.attention.target[rows, given]) > 0.9
    assert roc_auc_score(wrong, -evidence.neighbour_agreement) > 0.9


def test_planting_leaves_the_labels_alone(noisy):
    _, given, bench, evidence = noisy
    before = given.copy()
    size = evidence.fused.shape[1]
    planted = bench.plant(given, even_matrix(size, 0.9))
    np.testing.assert_array_equal(given, before)
    np.testing.assert_array_equal(planted.mask, planted.label != before)
    assert planted.mask.mean() == pytest.approx(0.1, abs=0.001)
    np.testing.assert_array_equal(evidence.attention.label, before)


def test_same_seed_same_bits(digits, noisy):
    _, given, _, evidence = noisy
    again = gather_feature_evidence(bench_of(digits[0]), given, FEW)
    np.testing.assert_array_equal(again.fused, evidence.fused)
    np.testing.assert_array_equal(again.neighbour_agreement, evidence.neighbour_agreement)
    assert again.quality == evidence.quality


def test_clean_labels_get_an_estimate_near_zero(digits):
    features, true = digits
    evidence = gather_feature_evidence(bench_of(features), true, {"gce": {}})
    found = judge_fused(true, evidence.fused, evidence.fusion)
    assert found.noise_rate is not None
    assert found.noise_rate < 0.02
    assert found.interval[0] == 0
    moved = (found.suggested != true) & (found.p_suggested >= 0.95) & (found.p_error > 0.5)
    assert moved.mean() < 0.01


def test_few_rows_groups_verified_rows_and_rare_classes():
    rng = np.random.default_rng(0)
    label = np.array([0] * 20 + [1] * 20 + [2])
    features = (np.eye(3)[label] * 4 + rng.normal(0, 1, (41, 3))).astype(np.float32)
    group = np.array([f"g{i // 2}" for i in range(41)], dtype=object)
    verified = np.zeros(41, bool)
    verified[-1] = True
    bench = PreparedFeatures(
        features, 3, weight=np.ones(41, np.float32), seed=1, group=group, verified=verified
    )
    evidence = gather_feature_evidence(bench, label, {"imae": {"T": 4.0}})
    assert np.isfinite(evidence.fused).all()
    found = judge_fused(label, evidence.fused, evidence.fusion, verified)
    assert found.p_error[-1] == 0
    assert evidence.loss == "imae"
