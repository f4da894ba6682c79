"""Records as a table and back: enough to rank again without training."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelclean.errors import DataError
from labelclean.records.lists import list_column, read_lists
from labelclean.records.recorder import RECORDED_SIGNALS
from labelclean.records.records import Records

_BY_CLASS = ("probs", "target")


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
        by_class = getattr(records, name)
        if by_class is not None:
            columns[name] = list_column(by_class)
    for name in RECORDED_SIGNALS:
        by_epoch = getattr(records, name)
        if by_epoch is not None:
            columns[name] = list_column(by_epoch.T)
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
    by_class: dict[str, Any] = {name: read_lists(table, name) for name in _BY_CLASS}
    by_epoch = {name: read_lists(table, name) for name in RECORDED_SIGNALS}
    turned: dict[str, Any] = {
        name: None if matrix is None else np.ascontiguousarray(matrix.T)
        for name, matrix in by_epoch.items()
    }
    return Records(label=table["label"].to_numpy(), **by_class, **turned)
