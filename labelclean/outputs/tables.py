"""issues.parquet and corrected.parquet as tables."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelclean.correction.actions import UNREADABLE
from labelclean.correction.result import Audit
from labelclean.outputs.schema import CORRECTED_COLUMNS, SIGNALS, issues_schema, label_type


def issues_parquet_table(audit: Audit) -> pa.Table:
    """Give every audited row, most suspect first; a signal that was not computed is null."""
    manifest = audit.manifest
    kind = label_type(manifest.classes)
    empty, nothing = np.full(len(audit.row), np.nan), np.full(len(audit.row), None)
    none = np.full(len(audit.row), -1)
    columns = {
        "rank": pa.array(np.arange(1, len(audit.row) + 1)),
        "row": pa.array(audit.row),
        "sample_id": pa.array(manifest.sample_id[audit.row], pa.string()),
        "path": pa.array(manifest.path[audit.row], pa.string()),
        "label_given": _labels(audit, audit.given, kind),
        "label_suggested": _labels(audit, audit.suggested, kind),
        "action": _words(audit.action),
        "p_error": _numbers(audit.p_error),
        "suspicion": _numbers(audit.suspicion),
        "p_suggested": _numbers(audit.p_suggested),
        "reason": _words(audit.reason),
        **{name: _numbers(audit.signals.get(name, empty)) for name in SIGNALS},
        **{name: _words(audit.beside.get(name, nothing)) for name in ("kind", "duplicate_kind")},
        **{name: _places(audit.beside.get(name, none)) for name in ("duplicate_group", "leaks_to")},
    }
    schema = issues_schema(kind)
    return pa.table([columns[name] for name in schema.names], schema=schema)


def corrected_table(audit: Audit) -> pa.Table:
    """Give the input rows in input order, the label corrected, plus what was done to each.

    Rows that were not audited have a null `label_action`.
    """
    manifest = audit.manifest
    table = manifest.with_label(audit.corrected()).table
    for name in CORRECTED_COLUMNS:
        if name in table.column_names:  # an earlier run of ours; anybody else's was refused
            table = table.drop_columns(name)
    position = table.column_names.index(str(manifest.label_col))
    given = manifest.table.column(position if manifest.label_col is None else manifest.label_col)
    action = np.full(len(manifest), None, dtype=object)
    action[audit.row] = audit.action
    confidence, error = (np.full(len(manifest), np.nan) for _ in range(2))
    readable = audit.action != UNREADABLE
    moved = audit.suggested != audit.given
    final = np.where(moved & (audit.action == "relabel"), audit.p_suggested, 1 - audit.p_error)
    confidence[audit.row[readable]] = final[readable]
    error[audit.row] = audit.p_error
    return with_evidence(table, given, action, confidence, error)


def with_evidence(
    table: pa.Table,
    given: pa.ChunkedArray,
    action: NDArray[np.object_],
    confidence: NDArray[np.float64],
    p_error: NDArray[np.float64],
) -> pa.Table:
    """Append what was done to each row: label_given, label_action, label_confidence, p_error."""
    added = (given, _words(action), _numbers(confidence), _numbers(p_error))
    for name, column in zip(CORRECTED_COLUMNS, added, strict=True):
        table = table.append_column(name, column)
    return table


def _labels(audit: Audit, label: NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    return pa.array(audit.manifest.label_values(label), kind)


def _words(values: NDArray[np.object_]) -> pa.Array:
    return pa.array(values, pa.string()).dictionary_encode()


def _numbers(values: NDArray[np.float64]) -> pa.Array:
    values = np.asarray(values, dtype=np.float64)
    return pa.array(values, mask=np.isnan(values))


def _places(values: NDArray[np.int64]) -> pa.Array:
    return pa.array(values, pa.int64(), mask=values < 0)
