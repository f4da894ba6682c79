"""From a column to labels: strings or integers that come back as they came in."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelclean.data.manifest import Label
from labelclean.errors import DataError, shortlist

_LARGEST = 2**63 - 1


def encode_labels(where: str, column: pa.ChunkedArray) -> tuple[np.ndarray, tuple[Label, ...]]:
    """Give (N,) int64 positions and the classes in order: text by code point, integers by value.

    Args:
        where: File and column, for messages.
        column: (N,) text or integers, dictionary-encoded or not.

    Raises:
        DataError: Lists, numbers that are not integers, missing or blank labels.
    """
    values = pc.cast(column, column.type.value_type) if _is_dictionary(column.type) else column
    _refuse_type(where, values.type)
    missing = pc.is_null(values)
    if _is_text(values.type):
        missing = pc.equal(pc.utf8_trim_whitespace(values), "").fill_null(True)
    rows = np.flatnonzero(missing.to_numpy())
    if len(rows):
        raise DataError(
            f"{where}: {len(rows)} labels are missing or blank (rows {shortlist(rows)}, counted "
            "from 0); fill them in or remove the rows."
        )
    encoded = values.combine_chunks().dictionary_encode()
    found: list[Label] = encoded.dictionary.to_pylist()
    beyond = [one for one in found if isinstance(one, int) and one > _LARGEST]
    if beyond:
        raise DataError(
            f"{where} holds {beyond[0]}; labels that are numbers must fit 64 bits with a sign. "
            "Write them as text."
        )
    order = sorted(range(len(found)), key=lambda i: found[i])
    position = np.empty(len(found), dtype=np.int64)
    position[order] = np.arange(len(found))
    codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False))
    return position[codes], tuple(found[i] for i in order)


def refuse_one_class(where: str, classes: tuple[Label, ...]) -> None:
    """Raise DataError unless there are at least two classes to confuse."""
    if len(classes) < 2:
        raise DataError(
            f"{where}: every row has the label {classes[0]!r}; label errors can only be found "
            "among at least two classes. Is another column the label (--label-col)?"
        )


def _is_dictionary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _refuse_type(where: str, kind: pa.DataType) -> None:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        raise DataError(
            f"{where} holds lists: a multi-label table. labelclean audits one label per image; "
            "split the table into one per label, or name another column with --label-col."
        )
    if not _is_text(kind) and not pa.types.is_integer(kind) and not pa.types.is_null(kind):
        raise DataError(
            f"{where} is of type {kind}; labels must be text or integers. Convert the column, "
            "or name another one with --label-col."
        )
