"""Cells of a typed table as text or JSON values, for formats without types of their own."""

import json
import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa

from labelclean.errors import OutputError


def refuse_binary(table: pa.Table) -> None:
    """Raise OutputError if a column holds bytes, which neither CSV nor JSON can carry."""
    names = [field.name for field in table.schema if _holds_bytes(field.type)]
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


def json_value(value: object) -> object:
    """Give a cell as something JSON can hold; NaN, which JSON has no word for, becomes null."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        raise OutputError(
            "a column holds an infinite number, which JSON cannot carry; write .parquet instead."
        )
    if isinstance(value, list):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {key: json_value(item) for key, item in value.items()}
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal | timedelta):
        return str(value)
    return value


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


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return True
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return True
    return any(_holds_bytes(kind.field(i).type) for i in range(kind.num_fields))
