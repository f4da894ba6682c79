"""Hugging Face Datasets as tables; the library itself is never imported, only met."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from labelclean.data.read import IMAGE_COLUMNS, LABEL_COLUMNS
from labelclean.data.saved_datasets import class_names
from labelclean.errors import DataError, shortlist


def is_hub(source: object) -> bool:
    """Tell whether this is an object of the library `datasets`."""
    return type(source).__module__.split(".")[0] == "datasets"


def hub_table(dataset: Any, image_col: str | None, label_col: str | None) -> pa.Table:
    """Give a Hugging Face Dataset as a table: pictures as bytes, class numbers as names.

    Raises:
        DataError: It is a dictionary of splits or a stream, or has no picture column.
    """
    kind = type(dataset).__name__
    if hasattr(dataset, "keys"):
        raise DataError(
            f"this {kind} holds several splits ({shortlist(dataset.keys())}); audit one of them, "
            f"for example dataset[{next(iter(dataset), 'train')!r}]."
        )
    if not hasattr(dataset, "with_format") or not hasattr(dataset, "__len__"):
        raise DataError(f"{kind} is a stream without rows to go back to; load it as a Dataset.")
    features = dict(dataset.features)
    image = image_col or _first(features, IMAGE_COLUMNS, "Image")
    label = label_col or _first(features, LABEL_COLUMNS, "ClassLabel")
    if type(features.get(image)).__name__ == "Image":
        # The picture as it is stored; decoding is ours, under our limits.
        plain = type(features[image])(decode=False)
        dataset = dataset.cast_column(image, plain)
    table = dataset.with_format("arrow")[:].combine_chunks()
    for name, feature in features.items():
        if type(feature).__name__ == "ClassLabel":
            codes = table.column(name).to_pylist()
            names = class_names(f"column {name!r}", codes, feature.names)
            table = _replaced(table, name, pa.array(names, pa.string()))
    if image in features and pa.types.is_struct(table.schema.field(image).type):
        table = _replaced(table, str(image), _with_bytes(table.column(image).to_pylist()))
    if label is not None and label_col is None and label not in LABEL_COLUMNS:
        table = table.append_column(LABEL_COLUMNS[0], table.column(label))
    if image is not None and image_col is None and image not in IMAGE_COLUMNS:
        table = table.rename_columns(
            [IMAGE_COLUMNS[0] if name == image else name for name in table.column_names]
        )
    return table


def _first(features: dict[str, Any], known: tuple[str, ...], kind: str) -> str | None:
    """Find a column by the usual names, else the only one of a type."""
    for name in known:
        if name in features:
            return name
    typed = [name for name, feature in features.items() if type(feature).__name__ == kind]
    return typed[0] if len(typed) == 1 else None


def _replaced(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def _with_bytes(cells: list[Any]) -> pa.Array:
    """Read pictures that the Dataset only names, so that the table stands by itself."""
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    filled = []
    for row, cell in enumerate(cells):
        found = dict(cell or {})
        path = found.get("path")
        if found.get("bytes") is None and path and Path(path).is_file():
            found["bytes"] = Path(path).read_bytes()
        found["path"] = Path(path).name if path else f"row {row}"
        filled.append({"bytes": found.get("bytes"), "path": found["path"]})
    return pa.array(filled, kind)
