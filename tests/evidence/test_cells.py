"""Neighbours of very many rows: nearly those of a full comparison, at bounded cost."""

import numpy as np

from labelclean.evidence import neighbours
from labelclean.evidence.cells import cells_around
from labelclean.evidence.neighbours import nearest_rows, unit_rows


def clustered(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 1, (20, 16))
    return centres[rng.integers(0, 20, count)] + rng.normal(0, 0.5, (count, 16))


def test_most_neighbours_are_found(monkeypatch):
    features = clustered(3000)
    exact, similar = nearest_rows(features, 20)
    monkeypatch.setattr(neighbours, "EXACT_ROWS", 1000)
    monkeypatch.setattr(neighbours, "cells_around", lambda unit: cells_around(unit, 64, 700))
    found, likeness = nearest_rows(features, 20)
    shared = np.mean([len(set(a) & set(b)) / 20 for a, b in zip(exact, found, strict=True)])
    assert shared > 0.8
    assert (likeness.mean(axis=1) > similar.mean(axis=1) - 0.03).mean() > 0.95
    assert (found != np.arange(3000)[:, None]).all(), "a row is no neighbour of itself"
    assert (np.diff(likeness, axis=1) <= 0).all()
    again = nearest_rows(features, 20)
    np.testing.assert_array_equal(again[0], found)


def test_every_row_has_one_cell_and_bounded_work():
    rng = np.random.default_rng(1)
    copies = np.repeat(rng.normal(size=(1, 8)), 4000, axis=0)
    mixed = np.concatenate([copies, rng.normal(size=(500, 8))]).astype(np.float32)
    cells = cells_around(unit_rows(mixed), 64, 256)
    members = np.concatenate([rows for rows, _ in cells])
    assert sorted(members.tolist()) == list(range(4500))
    assert all(256 <= len(around) <= 512 for _, around in cells)
    assert all((np.diff(around) > 0).all() for _, around in cells)


def test_rows_in_a_fixed_rhythm_are_all_learned_from():
    label = np.arange(4096) % 8
    features = np.eye(8)[label] + np.random.default_rng(2).normal(0, 0.01, (4096, 8))
    cells = cells_around(unit_rows(features), 512, 300)
    for rows, around in cells:
        assert len(np.unique(label[rows])) == 1
        assert set(label[rows]) <= set(label[around])
