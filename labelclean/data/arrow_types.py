"""Arrow types a column may have: made plain where others cannot be worked with, or refused."""

from collections.abc import Iterator

import pyarrow as pa

from labelclean.data.places import Place
from labelclean.errors import DataError, shortlist

_PLAIN = {"string_view": pa.string(), "binary_view": pa.binary()}


def plain_table(path: Place, table: pa.Table) -> pa.Table:
    """Give a table every column of which can be selected, written and read as values.

    Views become plain text, bytes and lists. Columns with values that cannot be told (times in
    unknown zones or beyond the calendar, structs with two fields of one name) are refused.

    Raises:
        DataError: Columns cannot be worked with; all of them are named.
    """
    faults = []
    for place, field in enumerate(table.schema):
        try:
            kind, column = _plain(field.type), table.column(place)
            if kind != field.type:
                column = _converted(column, kind)
                table = table.set_column(place, field.with_type(kind), column)
            _require_values(kind, column)
        except (pa.ArrowException, ValueError, OverflowError, TypeError, KeyError) as error:
            why = (str(error).splitlines() or [type(error).__name__])[0]
            faults.append(f"{field.name!r} of type {field.type} ({why})")
    if faults:
        raise DataError(
            f"{path} has columns that cannot be worked with: {shortlist(faults)}. Convert them to "
            "text or plain numbers, or leave them out."
        )
    return table


def _plain(kind: pa.DataType) -> pa.DataType:  # noqa: PLR0911 (a line for each family)
    """Give the plain form of a type."""
    if str(kind) in _PLAIN:
        return _PLAIN[str(kind)]
    if str(kind).startswith(("list_view", "large_list_view")):
        return pa.large_list(_plain(kind.value_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_plain(kind.value_type)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)), kind.list_size)
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type), kind.keys_sorted)
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return pa.struct([field.with_type(_plain(field.type)) for field in fields])
    return kind


def _converted(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if kind.num_fields == 0:
        return column.cast(kind)
    # By value: casts of views inside other types give arrays that are not valid.
    return pa.chunked_array([pa.array(part.to_pylist(), kind) for part in column.chunks], kind)


def _require_values(kind: pa.DataType, column: pa.ChunkedArray) -> None:
    """Raise where values cannot be told; plain types, whose values always can, cost nothing."""
    kinds = list(_inside(kind))
    for one in kinds:
        if pa.types.is_struct(one) and len({field.name for field in one}) < one.num_fields:
            raise ValueError("a struct has two fields of one name")
    if any(pa.types.is_temporal(one) or isinstance(one, pa.BaseExtensionType) for one in kinds):
        for part in column.chunks:
            part.to_pylist()


def _inside(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Give a type and all types it is made of."""
    yield kind
    if pa.types.is_dictionary(kind):
        yield from _inside(kind.value_type)
    elif isinstance(kind, pa.BaseExtensionType):
        yield from _inside(kind.storage_type)
    else:
        for at in range(kind.num_fields):
            yield from _inside(kind.field(at).type)


def holds_bytes(kind: pa.DataType) -> bool:
    """Tell whether values of a type are or hold bytes, which text cannot carry; a UUID is text."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.extension_name != "arrow.uuid" and holds_bytes(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return holds_bytes(kind.value_type)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return True
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return True
    return any(holds_bytes(kind.field(at).type) for at in range(kind.num_fields))
