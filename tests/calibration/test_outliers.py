"""The mixture that says who is an outlier: by hand, and on numbers drawn from it."""

import numpy as np

from labelclean.calibration.outliers import (
    OutlierMixture,
    fit_mixture,
    label_likelihood,
    mixture_probability,
    planted_log_ratios,
)


def test_a_row_by_hand():
    probs = np.array([[0.7, 0.2, 0.1]])
    table = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.02, 0.08, 0.9]])
    right, wrong = label_likelihood(np.array([1]), probs, table)
    assert np.allclose(right, 0.2)
    # Class 0 goes wrong to class 1 in .15 of .20, class 2 in .08 of .10.
    assert np.allclose(wrong, 0.7 * 0.75 + 0.1 * 0.8)
    mixture = OutlierMixture(np.array([0.1, 0.05]), 0.2)
    ratio = np.log([[2.0, 4.0]])
    lost = (0.1 * 2 + 0.05 * 4) / 3
    rest = 0.85 * (0.8 * 0.2 + 0.2 * 0.605)
    found = mixture_probability(mixture, ratio, right, wrong, 3)
    assert np.allclose(found, lost / (lost + rest))


def drawn(count=6000, classes=5, outliers=0.08, flips=0.15, seed=0):
    """Rows whose pictures are one number; outliers' is larger and their label is any."""
    rng = np.random.default_rng(seed)
    lost = rng.random(count) < outliers
    true = rng.integers(0, classes, count)
    score = rng.normal(0, 1, count) + 2.5 * lost
    probs = np.full((count, classes), 0.02)
    probs[np.arange(count), np.where(lost, rng.integers(0, classes, count), true)] = 0.92
    flipped = lost | (rng.random(count) < flips)
    label = np.where(flipped, rng.integers(0, classes, count), true)
    return lost, score, probs, label


def test_the_share_of_outliers_and_each_probability_are_found():
    lost, score, probs, label = drawn()
    even = np.full((5, 5), 0.03) + 0.85 * np.eye(5)
    right, wrong = label_likelihood(label, probs, even)
    # log N(x; 2.5, 1) / N(x; 0, 1)
    ratio = (2.5 * score - 2.5**2 / 2)[:, None]
    mixture = fit_mixture(ratio, right, wrong, 5)
    assert abs(mixture.shares.sum() - lost.mean()) < 0.015
    found = mixture_probability(mixture, ratio, right, wrong, 5)
    for low, high in ((0, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1.01)):
        inside = (found >= low) & (found < high)
        assert abs(found[inside].mean() - lost[inside].mean()) < 0.06
    # A wrong label alone makes no outlier.
    mislabelled = ~lost & (probs.argmax(axis=1) != label) & (score < 1)
    assert found[mislabelled].mean() < 0.15


def test_without_outliers_hardly_any_are_found():
    _, score, probs, label = drawn(outliers=0.0, seed=1)
    even = np.full((5, 5), 0.03) + 0.85 * np.eye(5)
    right, wrong = label_likelihood(label, probs, even)
    ratio = (2.5 * score - 2.5**2 / 2)[:, None]
    assert fit_mixture(ratio, right, wrong, 5).shares.sum() < 0.01


def test_ratios_are_learnt_out_of_fold_and_never_fall():
    rng = np.random.default_rng(2)
    real = rng.normal(0, 1, (3000, 2))
    kind = np.arange(300) % 2
    # The second kind is stranger in the first signal and more ordinary in the other one.
    planted = rng.normal(0, 1, (300, 2)) + np.where(kind[:, None] == 0, [2.0, 0.0], [2.0, -2.0])
    ratio = planted_log_ratios(real, planted, kind, np.ones(3000))
    assert ratio.shape == (3300, 2)
    slope = np.linalg.lstsq(np.column_stack([real, np.ones(3000)]), ratio[:3000], rcond=None)[0]
    assert abs(slope[0, 0] - 2) < 0.5
    assert abs(slope[2, 0] + 2) < 0.6
    assert slope[1, 1] > -1e-6
