"""Rows that show the same picture are one case: never in two folds, never each other's witness."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from labelclean.arrays import Ints, Singles

_NOT_SIMILAR = -9.0  # far below any cosine: such a neighbour has no vote


def keep_together(fold: Ints, twins: Ints) -> Ints:
    """(N,) folds in which every group of twins (N,), -1: none, is in the fold of its first row."""
    inside = np.flatnonzero(twins >= 0)
    _, first, group = np.unique(twins[inside], return_index=True, return_inverse=True)
    fold = fold.copy()
    fold[inside] = fold[inside[first[group]]]
    return fold


def join_groups(group: NDArray[np.object_], twins: Ints) -> NDArray[np.object_]:
    """(N,) groups of the user, joined where a picture of one is also in another."""
    name, code = np.unique(group.astype(str), return_inverse=True)
    inside = twins >= 0
    size = len(name) + int(twins.max(initial=-1)) + 1
    pairs = code[inside], len(name) + twins[inside]
    linked = sparse.coo_array((np.ones(int(inside.sum()), bool), pairs), (size, size))
    part = connected_components(linked, directed=False)[1]
    joined: NDArray[np.object_] = part[code].astype(str).astype(object)
    return joined


def hush_twins(near: Ints, similar: Singles, twins: Ints) -> Singles:
    """(N, k) similarities in which copies of a row's own picture have no say about its label."""
    own = twins[:, None]
    return np.where((own >= 0) & (twins[near] == own), np.float32(_NOT_SIMILAR), similar)
