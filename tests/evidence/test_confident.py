import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from labelclean.evidence.confident import (
    calibrated_joint,
    class_thresholds,
    confident_class,
    confident_joint,
)  # fmt: skip


def slow_joint(label, probs):
    """A second implementation, one row at a time, straight from the definition."""
    size = probs.shape[1]
    thresholds = []
    for k in range(size):
        own = [float(probs[i][k]) for i in range(len(label)) if label[i] == k]
        thresholds.append(sum(own) / len(own) if own else float("inf"))
    joint = [[0] * size for _ in range(size)]
    for i, row in enumerate(probs):
        best, top = None, -1.0
        for k in range(size):
            if row[k] >= thresholds[k] - 1e-6 and row[k] > top:
                best, top = k, row[k]
        if best is not None:
            joint[label[i]][best] += 1
    for k in range(size):
        joint[k][k] = max(joint[k][k], 1)
    return joint


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), st.integers(1, 40), st.integers(0, 10_000), st.sampled_from([0.1, 1, 5]))
def test_joint_equals_the_slow_one(size, count, seed, alpha):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(size, alpha), count)
    label = rng.integers(0, size, count)
    assert confident_joint(label, probs).tolist() == slow_joint(label, probs)


def test_calibrated_joint_keeps_the_label_shares():
    rng = np.random.default_rng(0)
    probs, label = rng.dirichlet(np.ones(4), 300), rng.integers(0, 4, 300)
    joint = calibrated_joint(label, probs)
    np.testing.assert_allclose(joint.sum(axis=1), np.bincount(label, minlength=4) / 300)


def test_a_class_without_rows_claims_nobody():
    probs = np.array([[0.6, 0.1, 0.3], [0.2, 0.5, 0.3]])
    label = np.array([0, 1])
    assert class_thresholds(label, probs)[2] == np.inf
    assert 2 not in confident_class(probs, class_thresholds(label, probs))
