"""Which rows `--limit` takes: the first ones, or an even part where rows stand class by class."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_FEWER_TURNS = 2
"""So many times fewer changes of the label than among shuffled rows: sorted by it."""


@dataclass(frozen=True, slots=True)
class EvenPart:
    """Rows at even distances.

    Args:
        rows: (n,) their places in the file.
        total: How many rows the file has.
    """

    rows: NDArray[np.int64]
    total: int

    def some(self, rows: NDArray[np.int64]) -> "EvenPart":
        """Give a part of the part."""
        return replace(self, rows=self.rows[rows])


def even_part(label: pa.ChunkedArray, limit: int) -> EvenPart | None:
    """Take rows at even distances where they stand class by class and the first ones lack a class.

    Args:
        label: (N,) labels.
        limit: How many rows are asked for.

    Returns:
        None: the first rows will do.
    """
    total = len(label)
    if limit >= total or pa.types.is_nested(label.type):
        return None
    plain = label.cast(label.type.value_type) if pa.types.is_dictionary(label.type) else label
    found = plain.combine_chunks().dictionary_encode().indices
    codes = np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False))
    count = np.unique(codes, return_counts=True)[1]
    shuffled = total * (1 - float(np.square(count / total).sum()))
    turns = int(np.count_nonzero(np.diff(codes)))
    if turns * _FEWER_TURNS >= shuffled or len(np.unique(codes[:limit])) == len(count):
        return None
    return EvenPart(np.arange(limit, dtype=np.int64) * total // limit, total)
