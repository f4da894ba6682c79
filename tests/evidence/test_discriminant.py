"""The generative posterior and its components, against slow second implementations."""

import numpy as np
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from labelclean.evidence import folds
from labelclean.evidence.components import principal_components
from labelclean.evidence.discriminant import (
    at_scale,
    choose_shrinkage,
    discriminant_scores,
    likely_scale,
)


def blobs(count=300, size=3, width=6, seed=0):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, size, count)
    centre = rng.normal(0, 2, (size, width))
    return (centre[label] + rng.normal(0, 1, (count, width))).astype(np.float32), label


def one(features, shares, fold, shrinkage=0.05):
    """Scores and distances at one shrinkage."""
    scores, distance = discriminant_scores(features, shares, fold, (shrinkage,))
    return scores[0], distance[0]


def test_few_rows_ask_for_more_shrinkage():
    rng, chosen = np.random.default_rng(3), []
    for count in (90, 4000):
        label = rng.integers(0, 3, count)
        features = 2.5 * np.eye(3, 50)[label] + rng.normal(0, 1, (count, 50))
        # Directions of different spread: a sphere is wrong, but few rows know no better.
        features = (features * np.geomspace(0.5, 2, 50)).astype(np.float32)
        shares, fold = np.eye(3)[label], np.arange(count) % 5
        chosen.append(choose_shrinkage(features, shares, fold, label, np.eye(3)))
    assert chosen[0] > chosen[1]


def test_the_distance_is_that_to_the_nearest_class():
    features, label = blobs(600)
    shares, fold = np.eye(3)[label], np.arange(600) % 5
    _, distance = one(np.concatenate([features, [[50] * 6]]).astype(np.float32),
                      np.concatenate([shares, [[1, 0, 0]]]), np.append(fold, 0))  # fmt: skip
    assert distance[-1] > 10 * distance[:-1].max()


def test_components_are_those_of_scikit_learn():
    features, _ = blobs()
    ours = principal_components(features, 4)
    theirs = PCA(4).fit_transform(features.astype(np.float64))
    for one, other in zip(ours.T, theirs.T, strict=True):
        assert abs(np.corrcoef(one, other)[0, 1]) > 1 - 1e-6
        np.testing.assert_allclose(one.std(), other.std(), rtol=1e-4)


def test_never_more_components_than_there_are():
    features, _ = blobs(count=5)
    assert principal_components(features, 512).shape == (5, 5)


def test_hard_memberships_without_shrinkage_are_plain_discriminant_analysis():
    features, label = blobs()
    fold, exact = np.arange(len(label)) % 5, features.astype(np.float64)
    scores, distance = one(features, np.eye(3)[label], fold, 0.0)
    assert (distance > 0).all()
    for k in range(5):
        out = fold == k
        model = LinearDiscriminantAnalysis(solver="lsqr").fit(exact[~out], label[~out])
        expected = model.decision_function(exact[out])
        # Log-odds are defined up to a constant a row.
        got = scores[out] - scores[out].mean(axis=1, keepdims=True)
        np.testing.assert_allclose(
            got, expected - expected.mean(axis=1, keepdims=True), rtol=1e-4, atol=1e-4
        )


def test_a_row_does_not_see_its_own_label():
    features, label = blobs(count=60)
    fold = np.arange(60) % 5
    shares = np.eye(3)[label]
    before = one(features, shares, fold)[0][0]
    shares[0] = np.eye(3)[(label[0] + 1) % 3]
    np.testing.assert_allclose(one(features, shares, fold)[0][0], before, rtol=1e-5)


def test_a_class_without_rows_gets_no_mass():
    features, label = blobs()
    shares = np.concatenate([np.eye(3)[label], np.zeros((len(label), 1))], axis=1)
    scores, _ = one(features, shares, np.arange(len(label)) % 5)
    assert np.isfinite(scores).all()
    assert (scores.argmax(axis=1) != 3).all()


def test_the_temperature_calibrates():
    rng = np.random.default_rng(1)
    truth = rng.normal(0, 1, (4000, 3)) * 1.5
    probs = np.exp(truth) / np.exp(truth).sum(axis=1, keepdims=True)
    label = (probs.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)
    for stretch in (0.3, 2.0, 5.0):
        scale = likely_scale(stretch * truth, label, np.eye(3))
        np.testing.assert_allclose(at_scale(stretch * truth, scale), probs, atol=0.08)


def test_a_sample_of_very_many_rows_settles_the_gaussians(monkeypatch):
    features, label = blobs(4000)
    shares, fold = np.eye(3)[label], np.arange(4000) % 5
    every = one(features, shares, fold)[0].argmax(axis=1)
    monkeypatch.setattr(folds, "ENOUGH_ROWS", 1000)
    monkeypatch.setattr(folds, "ENOUGH_PER_CLASS", 1)
    some = one(features, shares, fold)[0].argmax(axis=1)
    assert (some == every).mean() > 0.99
