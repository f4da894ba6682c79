"""Outliers among classes that are clouds: found where planted ones are, and not invented."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from labelclean.calibration.pattern import start_matrix
from labelclean.evidence.components import principal_components
from labelclean.evidence.neighbours import nearest_rows
from labelclean.evidence.outliers import (
    LIKENESS_RIDGE,
    PlantedOutliers,
    RowFeatures,
    _RidgeOutOfFold,
    _told_apart,
    find_outliers,
)

CLASSES, WIDTH, ROWS, PLANTED = 4, 24, 800, 90


@pytest.fixture(scope="module")
def clouds():
    """Rows of four classes, one in twenty from elsewhere under some label; and what was planted."""
    rng = np.random.default_rng(0)
    centre = rng.normal(0, 3, (CLASSES, WIDTH))
    true = rng.integers(0, CLASSES, ROWS)
    features = centre[true] + rng.normal(0, 1, (ROWS, WIDTH))
    lost = np.zeros(ROWS, bool)
    lost[rng.choice(ROWS, ROWS // 20, replace=False)] = True
    features[lost] = rng.normal(0, 3, (lost.sum(), WIDTH))
    flipped = ~lost & (rng.random(ROWS) < 0.1)
    label = np.where(flipped | lost, rng.integers(0, CLASSES, ROWS), true)
    apart = -0.5 * ((features[:, None] - centre) ** 2).sum(axis=2) / 4
    probs = np.exp(apart - apart.max(axis=1, keepdims=True))
    probs = (probs / probs.sum(axis=1, keepdims=True)).astype(np.float32)
    made_of = np.array([rng.choice(ROWS, 2, replace=False) for _ in range(PLANTED)])
    strange = rng.normal(0, 3, (PLANTED, WIDTH))
    return features.astype(np.float32), label, probs, lost, flipped, made_of, strange


def ask(clouds, strange, verified=None):
    features, label, probs, *_, made_of, _ = clouds
    components = principal_components(features, 512)
    near, similar = nearest_rows(components, 20)
    fold = np.arange(ROWS) % 5
    rows = RowFeatures(features, components, near, similar, fold)
    kind = np.arange(PLANTED) % 3
    planted = PlantedOutliers(strange.astype(np.float32), kind, made_of)
    return find_outliers(rows, planted, probs, label, start_matrix(CLASSES), verified)


def test_outliers_are_found_and_mislabelled_rows_are_none(clouds):
    _, _, _, lost, flipped, _, strange = clouds
    found = ask(clouds, strange)
    assert found.auroc > 0.95
    assert roc_auc_score(lost, found.probability) > 0.97
    assert abs(found.probability.mean() - lost.mean()) < 0.04
    assert found.probability[flipped].mean() < 0.2
    assert 0 < sum(found.shares) < 0.15


def test_a_person_who_vouched_knows_better(clouds):
    lost, strange = clouds[3], clouds[-1]
    verified = np.zeros(ROWS, bool)
    verified[np.flatnonzero(lost)[:5]] = True
    assert (ask(clouds, strange, verified).probability[verified] == 0).all()


def test_planted_pictures_that_look_like_all_others_are_no_basis(clouds):
    features = clouds[0]
    found = ask(clouds, features[np.random.default_rng(1).choice(ROWS, PLANTED, replace=False)])
    assert found.probability is None
    assert found.auroc < 0.7


def test_outliers_found_teach_what_planted_ones_do_not_show(clouds):
    features, lost, strange = clouds[0], clouds[3], clouds[-1]
    found = ask(clouds, strange)
    assert len(found.shares) == 1
    nothing = np.random.default_rng(3).random(ROWS)
    learn = _RidgeOutOfFold(features, np.arange(ROWS) % 5)
    assert _told_apart(learn(nothing), nothing, np.ones(ROWS)) < 0.7
    assert _told_apart(learn(lost.astype(float)), lost.astype(float), np.ones(ROWS)) > 0.6
    # By hand: the rows of a fold are told by what the others teach.
    fold = np.arange(ROWS) % 5
    seen, target = fold != 0, lost - lost.mean()
    square = features[seen].T @ features[seen]
    square += LIKENESS_RIDGE * np.trace(square) / WIDTH * np.eye(WIDTH)
    by_hand = features[~seen] @ np.linalg.solve(square, features[seen].T @ target[seen])
    assert np.allclose(learn(lost.astype(float))[~seen], by_hand, atol=1e-4)
