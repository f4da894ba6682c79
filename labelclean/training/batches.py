"""Who is seen when: the order of an epoch, its batches, and each process's share of a batch."""

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def epoch_order(label: Rows, *, seed: int, epoch: int, stratify: bool = False) -> Rows:
    """Give a permutation of all rows: every sample is seen once in an epoch.

    It depends on nothing but its arguments, so a resumed run and every process of a distributed
    one go the same way.

    Args:
        label: (N,) given labels.
        seed: Seed of the run.
        epoch: 0-based.
        stratify: Spread every class evenly over the epoch.
    """
    generator = np.random.default_rng([abs(seed), int(seed < 0), epoch])
    order = generator.permutation(len(label))
    if not stratify:
        return order
    place = np.empty(len(label))
    for code in np.unique(label):
        members = order[label[order] == code]
        # The k-th of n members belongs somewhere in the k-th n-th of the epoch.
        place[members] = (np.arange(len(members)) + generator.random(len(members))) / len(members)
    return np.argsort(place, kind="stable")


def split_batches(order: Rows, batch_size: int, processes: int = 1) -> list[Rows]:
    """Cut an order into batches of nearly equal size.

    Sizes differ by one at most. No process gets fewer than two samples of a batch, because batch
    norms cannot work with one, as long as there are twice as many samples as processes.
    """
    wanted = -(-len(order) // batch_size)
    count = max(1, min(wanted, len(order) // (2 * processes)))
    return np.array_split(order, count)


def share(rows: Rows, rank: int, processes: int) -> Rows:
    """Give one process's part of a batch or of the rows; the parts are disjoint and complete."""
    return np.array_split(rows, processes)[rank]
