"""Noise-aware heads: out of fold, in sample, and on very many rows at bounded cost."""

from itertools import chain

import numpy as np
import pytest
import torch

from labelclean.calibration.pattern import fit_pattern
from labelclean.evidence import folds
from labelclean.evidence.noise_aware import _turns, train_noise_aware_heads

ROWS, SIZE = 3000, 3


def noisy_blobs():
    rng = np.random.default_rng(0)
    true = rng.integers(0, SIZE, ROWS)
    centre = rng.normal(0, 3, (SIZE, 6))
    features = (centre[true] + rng.normal(0, 1, (ROWS, 6))).astype(np.float32)
    label = np.where(rng.random(ROWS) < 0.2, (true + 1) % SIZE, true)
    return features, label, true


@pytest.mark.parametrize("most", [ROWS, 500])
def test_heads_find_the_true_class(monkeypatch, most):
    monkeypatch.setattr(folds, "ENOUGH_ROWS", most)
    monkeypatch.setattr(folds, "ENOUGH_PER_CLASS", 1)
    features, label, true = noisy_blobs()
    asked = []

    def estimate(rows, probs, table):
        asked.append(len(rows))
        assert probs.shape == (len(rows), SIZE)
        return fit_pattern(label[rows], probs, 0.0, table, 3)

    said = train_noise_aware_heads(
        features, label, np.ones(ROWS, np.float32), np.arange(ROWS) % 5, SIZE, estimate, seed=0
    )
    assert set(asked) == {most}
    for probs in (said.out_of_fold, said.in_sample):
        assert probs.shape == (ROWS, SIZE)
        assert (probs.argmax(axis=1) == true).mean() > 0.93
    np.testing.assert_allclose(said.transition.sum(axis=1), 1)


def test_every_row_has_its_turn():
    turns = _turns(10, 4, torch.Generator().manual_seed(0))
    taken = [next(turns).tolist() for _ in range(8)]
    assert sorted(chain.from_iterable(taken[:4])) == list(range(10))
    assert sorted(chain.from_iterable(taken[4:])) == list(range(10))
    assert taken[:4] != taken[4:]
