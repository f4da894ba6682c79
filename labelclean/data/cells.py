"""Cells of a typed table as text or JSON values, for formats without types of their own."""

import json
import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa

from labelclean.data.arrow_types import holds_bytes
from labelclean.errors import OutputError

_LARGEST = 2**63 - 1


def refuse_binary(table: pa.Table) -> None:
    """Raise OutputError if a column holds bytes, which neither CSV nor JSON can carry."""
    names = [field.name for field in table.schema if holds_bytes(field.type)]
    if names:
        raise OutputError(
            f"column {names[0]!r} holds bytes, which a text file cannot carry; "
            "write .parquet or an image folder instead."
        )


def cell_texts(column: pa.ChunkedArray) -> list[str]:
    """Give a column's cells as text that reads back to the same value where text can do that."""
    kind = column.type
    values = column.to_pylist()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return ["" if value is None else value for value in values]
    return [_text(value) for value in values]


def json_value(value: object) -> object:  # noqa: PLR0911 (a line for each family of values)
    """Give a cell as something JSON can hold; NaN, which JSON has no word for, becomes null."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        raise OutputError(
            "a column holds an infinite number, which JSON cannot carry; write .parquet instead."
        )
    if isinstance(value, np.ndarray | np.generic):
        return json_value(value.tolist())
    if isinstance(value, list):
        return [_inner_value(item) for item in value]
    if isinstance(value, tuple):  # an entry of a map
        return {"key": _inner_value(value[0]), "value": _inner_value(value[1])}
    if isinstance(value, dict):
        return {key: _inner_value(item) for key, item in value.items()}
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal | timedelta | UUID):
        return str(value)
    return value


def _inner_value(value: object) -> object:
    if isinstance(value, int) and value > _LARGEST:
        raise OutputError(
            f"a column holds {value} inside other values, more than readers of JSON take for a "
            "whole number; write .parquet instead."
        )
    return json_value(value)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list | dict):
        return json.dumps(json_value(value), ensure_ascii=False)
    return str(json_value(value))
