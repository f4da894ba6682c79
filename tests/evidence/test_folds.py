"""Folds spread classes evenly and keep groups together."""

import numpy as np
import pytest

from labelclean.evidence.folds import assign_folds


@pytest.mark.parametrize("seed", range(5))
def test_every_class_is_spread_evenly(seed):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 4, 203)
    fold = assign_folds(label, 5, np.random.default_rng(seed))
    assert set(fold.tolist()) == set(range(5))
    for one in range(4):
        counts = np.bincount(fold[label == one], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_same_seed_same_folds_other_seed_other_folds():
    label = np.arange(100) % 3
    first, again, other = (assign_folds(label, 5, np.random.default_rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_groups_stay_together_and_folds_stay_balanced():
    rng = np.random.default_rng(0)
    group = np.array([f"g{i}" for i in rng.integers(0, 60, 600)], dtype=object)
    label = rng.integers(0, 3, 600)
    fold = assign_folds(label, 5, np.random.default_rng(0), group)
    for name in set(group):
        assert len(set(fold[group == name].tolist())) == 1
    counts = np.bincount(fold, minlength=5)
    assert counts.min() > 0.6 * counts.max()
