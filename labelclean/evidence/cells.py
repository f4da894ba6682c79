"""Nearest rows among very many: looked for in the cells around a row, not everywhere.

Comparing all rows with all takes time that grows with their square: hours for a million. So the
rows are sorted into cells around centres (spherical k-means on a part of them), and a row is
compared with the rows of the cells nearest to its own. The work per row is bounded whatever the
data look like: also a million copies of one row are compared with some thousand rows each.
"""

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Ints
from labelclean.evidence.folds import some_rows

_Rows = NDArray[np.float32]

CELL = 1024  # rows in a cell, on average
_CANDIDATES = 8192  # rows that a row is compared with, at least; at most twice as many
LEARNED = 32  # rows per cell that the centres are learned from
ROUNDS = 8
_BLOCK_NUMBERS = 1 << 22  # similarities held at a time: 16 MB


def cells_around(unit: _Rows, cell: int = CELL, candidates: int = _CANDIDATES) -> list[list[Ints]]:
    """Sort rows into cells and find where the neighbours of each cell's rows are looked for.

    Args:
        unit: (N, D) rows of length one.
        cell: Rows in a cell, on average.
        candidates: Rows to compare with, at least; at most twice as many.

    Returns:
        For every cell that is not empty its rows and its candidates, each in order of rows.
    """
    centres = _centres(unit, max(1, len(unit) // cell))
    owner = _closest(unit, centres)
    order = np.argsort(owner, kind="stable")
    size = np.bincount(owner, minlength=len(centres))
    members = np.split(order, np.cumsum(size)[:-1])
    found = []
    for number in np.flatnonzero(size):
        nearby = np.argsort(-(centres @ centres[number]), kind="stable")
        enough = int(np.searchsorted(np.cumsum(size[nearby]), min(candidates, len(unit)))) + 1
        around = np.sort(np.concatenate([members[at] for at in nearby[:enough]]))
        if len(around) > 2 * candidates:
            # A cell of copies can hold most rows: thinned evenly, they are still its neighbours.
            around = around[np.linspace(0, len(around) - 1, 2 * candidates).astype(np.int64)]
        found.append([members[number], around])
    return found


def _centres(unit: _Rows, count: int) -> _Rows:
    """Learn centres from a sample that is the same every time, so that two runs agree."""
    learned = unit[some_rows(len(unit), LEARNED * count)]
    centres = learned[some_rows(len(learned), count)]
    for _ in range(ROUNDS):
        owner = _closest(learned, centres)
        order = np.argsort(owner, kind="stable")
        present, first = np.unique(owner[order], return_index=True)
        sums = np.add.reduceat(learned[order], first, axis=0)
        length = np.sqrt(np.einsum("id,id->i", sums, sums))
        full = length > 0
        centres[present[full]] = sums[full] / length[full, None]
    return centres


def _closest(unit: _Rows, centres: _Rows) -> Ints:
    step = max(1, _BLOCK_NUMBERS // len(centres))
    parts = [
        (unit[begin : begin + step] @ centres.T).argmax(axis=1)
        for begin in range(0, len(unit), step)
    ]
    return np.concatenate(parts).astype(np.int64)
