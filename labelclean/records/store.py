"""Records as a table and back: enough to rank again without training."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelclean.errors import DataError
from labelclean.records.recorder import SIGNALS
from labelclean.records.records import Records

_BY_CLASS = ("probs", "oof_probs", "target")


def records_table(
    records: Records, row: NDArray[np.int64], sample_id: NDArray[np.object_]
) -> pa.Table:
    """Give one line per sample; what was recorded per epoch or class is a list in its cell.

    The embedding is left out: it is by far the largest part and the feature cache has it.

    Args:
        records: N samples.
        row: (N,) their rows in the manifest.
        sample_id: (N,) text.
    """
    columns: dict[str, pa.Array] = {
        "row": pa.array(row, pa.int64()),
        "sample_id": pa.array([str(text) for text in sample_id], pa.string()),
        "label": pa.array(records.label, pa.int64()),
    }
    for name in _BY_CLASS:
        columns |= _column(name, getattr(records, name))
    for name in SIGNALS:
        by_epoch = getattr(records, name)
        columns |= _column(name, None if by_epoch is None else by_epoch.T)
    return pa.table(columns)


def records_from_table(table: pa.Table) -> Records:
    """Give back the Records of a table that `records_table` made.

    Raises:
        DataError: The table is something else.
    """
    missing = {"row", "sample_id", "label", "probs"} - set(table.column_names)
    if missing:
        raise DataError(
            f"these are no records of labelclean: no column {', '.join(sorted(missing))}."
        )
    by_class: dict[str, Any] = {name: _matrix(table, name) for name in _BY_CLASS}
    by_epoch = {name: _matrix(table, name) for name in SIGNALS}
    turned: dict[str, Any] = {
        name: None if matrix is None else np.ascontiguousarray(matrix.T)
        for name, matrix in by_epoch.items()
    }
    return Records(label=table["label"].to_numpy(), **by_class, **turned)


def _column(name: str, matrix: NDArray[np.generic] | None) -> dict[str, pa.Array]:
    if matrix is None:
        return {}
    flat = pa.array(np.ascontiguousarray(matrix).ravel())
    return {name: pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])}


def _matrix(table: pa.Table, name: str) -> NDArray[Any] | None:
    if name not in table.column_names:
        return None
    column = table[name].combine_chunks()
    # to_numpy of the flattened list: float32 and int32 as they were, NaN where not seen.
    values: NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(table), -1)
