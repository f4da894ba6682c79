"""Matrices as list columns and back: one cell holds a sample's values by epoch or class."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def list_column(matrix: NDArray[np.generic]) -> pa.Array:
    """Give (N, K) values as N lists of K."""
    flat = pa.array(np.ascontiguousarray(matrix).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])


def read_lists(table: pa.Table, name: str) -> NDArray[Any] | None:
    """Give a column of lists as (N, K); None where there is no such column."""
    if name not in table.column_names:
        return None
    column = table[name].combine_chunks()
    # to_numpy of the flattened list: float32 and int32 as they were, NaN where not seen.
    values: NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(table), -1)
