"""Who leaves which rows out: groups and copies of a picture are never apart."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from labelclean.errors import DataError
from labelclean.evidence.duplicates import DuplicateGroups, no_duplicates
from labelclean.training.runtime import Runtime
from labelclean.training.samples import Samples
from labelclean.workflows.cross_fitting import deal_folds
from small_manifests import manifest_of

ROWS, TRAINED = 90, 80
RUNTIME = Runtime(torch.device("cpu"))
MANIFEST = manifest_of(["a", "b", "c"] * (ROWS // 3), arrays=np.zeros((ROWS, 2), np.float32))


def samples_of(manifest) -> Samples:
    # Trained rows are not the first of the manifest.
    rows = np.arange(ROWS)[::-1].copy()
    return Samples(
        source=manifest.arrays,
        rows=rows,
        digest=np.zeros((ROWS, 32), np.uint8),
        trained=TRAINED,
        label=manifest.label[rows],
        weight=np.ones(TRAINED, np.float32),
        sample_id=manifest.sample_id[rows],
        num_classes=3,
        picture_side=None,
    )


def test_rows_are_dealt_evenly_and_the_same_every_time():
    samples = samples_of(MANIFEST)
    fold = deal_folds(MANIFEST, samples, no_duplicates(), 4, RUNTIME)
    counts = np.zeros((4, 3), int)
    np.add.at(counts, (fold, samples.label[:TRAINED]), 1)
    assert counts.min() >= counts.max() - 1
    np.testing.assert_array_equal(fold, deal_folds(MANIFEST, samples, no_duplicates(), 4, RUNTIME))
    other = deal_folds(MANIFEST, samples, no_duplicates(), 4, replace(RUNTIME, seed=1))
    assert (fold != other).any()
    assert deal_folds(MANIFEST, samples, no_duplicates(), 0, RUNTIME) is None


@pytest.mark.parametrize("grouped", [False, True])
def test_groups_and_copies_stay_together(grouped):
    group = (np.arange(ROWS) // 2).astype(str).astype(object) if grouped else None
    manifest = replace(MANIFEST, group=group)
    # Rows 20 and 41 show one picture; with groups their neighbours come along.
    same = DuplicateGroups(np.array([20, 41]), np.array([0, 0]), np.array([True, True]))
    samples = samples_of(manifest)
    fold = deal_folds(manifest, samples, same, 3, RUNTIME)
    of_row = dict(zip(samples.rows[:TRAINED].tolist(), fold.tolist(), strict=True))
    assert of_row[20] == of_row[41]
    if grouped:
        assert all(of_row[row] == of_row[row + 1] for row in range(10, ROWS, 2))
    assert set(fold.tolist()) == {0, 1, 2}


def test_a_group_of_all_rows_cannot_be_left_out():
    manifest = replace(MANIFEST, group=np.array(["one"] * ROWS, dtype=object))
    with pytest.raises(DataError, match=r"training\.folds is 2, .*training\.folds=0"):
        deal_folds(manifest, samples_of(manifest), no_duplicates(), 2, RUNTIME)
