"""Orders, batches and shares: every sample once, nobody alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelclean.training.batches import epoch_order, share, split_batches


@given(
    samples=st.integers(2, 300),
    batch_size=st.integers(1, 64),
    processes=st.integers(1, 4),
    seed=st.integers(-5, 5),
)
def test_every_sample_once_and_never_one_alone(samples, batch_size, processes, seed):
    order = epoch_order(np.zeros(samples, np.int64), seed=seed, epoch=3)
    batches = split_batches(order, batch_size, processes)
    parts = [share(batch, rank, processes) for batch in batches for rank in range(processes)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(samples))
    sizes = [len(batch) for batch in batches]
    assert max(sizes) - min(sizes) <= 1
    if samples >= 2 * processes:
        assert min(len(part) for part in parts) >= 2
    if batch_size >= 2 * processes and samples >= 2 * processes:
        # Only so many more samples as it takes to leave nobody alone.
        assert max(sizes) <= max(batch_size, 4 * processes)


def test_orders_differ_by_seed_and_epoch_and_are_repeatable():
    label = np.zeros(50, np.int64)
    first = epoch_order(label, seed=0, epoch=0)
    assert np.array_equal(first, epoch_order(label, seed=0, epoch=0))
    for other in ({"seed": 1, "epoch": 0}, {"seed": 0, "epoch": 1}, {"seed": -1, "epoch": 0}):
        assert not np.array_equal(first, epoch_order(label, **other))


def test_a_stratified_order_has_every_class_in_every_batch():
    label = np.repeat([0, 1, 2], [80, 16, 8])
    order = epoch_order(label, seed=0, epoch=0, stratify=True)
    assert sorted(order.tolist()) == list(range(104))
    for batch in split_batches(order, 26):
        assert set(label[batch]) == {0, 1, 2}


@pytest.mark.parametrize(("samples", "batch_size"), [(3, 2), (5, 4), (129, 128), (2, 64)])
def test_no_batch_of_one(samples, batch_size):
    sizes = [len(batch) for batch in split_batches(np.arange(samples), batch_size)]
    assert min(sizes) >= 2
