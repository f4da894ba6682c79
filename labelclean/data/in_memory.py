"""Samples in a program's memory, written as a manifest that everything else can read again."""

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from labelclean.data.hub import hub_table, is_hub
from labelclean.data.parquet import write_parquet
from labelclean.data.read import IMAGE_COLUMNS, LABEL_COLUMNS
from labelclean.errors import DataError

HELD = "input"
"""Name, without its ending, of the file a run keeps such samples in."""
_ACCEPTED = (
    "give a path, a DataFrame, a pair (X, y), a torch Dataset or a Hugging Face Dataset"
)  # fmt: skip


def hold_samples(
    source: Any, folder: Path, *, image_col: str | None = None, label_col: str | None = None
) -> Path:
    """Write samples as `input.parquet`, or `input.npz` for arrays.

    Args:
        source: A DataFrame; a pair (X, y) of N paths, pictures, (N, H, W[, C]) uint8 pixels or
            (N, D) features and N labels (or None); a torch Dataset of (picture, label) pairs, or
            of pairs of features and labels; a Hugging Face Dataset.
        folder: Where to write.
        image_col: Column with paths or pictures; None: the first known name present.
        label_col: Column with labels; None: the first known name present.

    Returns:
        The file.

    Raises:
        DataError: It is none of these, or cannot be written as a table.
    """
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return _write(folder, _frame_table(source, image_col))
    if is_hub(source):
        return _write(folder, hub_table(source, image_col, label_col))
    if isinstance(source, tuple) and len(source) == 2:
        return _hold_pair(folder, *source)
    if hasattr(source, "__getitem__") and hasattr(source, "__len__") and not _is_plain(source):
        return _hold_pair(folder, *_dataset_pair(source))
    raise DataError(f"an audit cannot read {type(source).__name__}; {_ACCEPTED}.")


def root_of_paths(table: pa.Table, image_col: str | None) -> Path:
    """Give the folder that the paths of a table start from: where all absolute ones lie, or here.

    Args:
        table: The samples.
        image_col: Column with paths; None: the first known name present.
    """
    name = image_col or next((n for n in IMAGE_COLUMNS if n in table.column_names), None)
    if name is None or name not in table.column_names:
        return Path.cwd()
    column = table.column(name)
    if not pa.types.is_string(column.type) or column.null_count or not len(column):
        return Path.cwd()
    paths = column.to_pylist()
    if not all(Path(path).is_absolute() for path in paths):
        return Path.cwd()
    return Path(os.path.commonpath([str(Path(path).parent) for path in paths]))


def _is_plain(source: object) -> bool:
    return isinstance(source, np.ndarray | str | bytes | dict | list | tuple)


def _write(folder: Path, table: pa.Table) -> Path:
    target = folder / f"{HELD}.parquet"
    write_parquet(target, table.replace_schema_metadata(None), {})
    return target


def _frame_table(frame: Any, image_col: str | None) -> pa.Table:
    """Give a DataFrame as a table; an index that says something becomes the sample ids."""
    frame = frame.copy(deep=False)
    frame.columns = [str(name) for name in frame.columns]
    name = image_col or next((n for n in IMAGE_COLUMNS if n in frame.columns), None)
    pictures = None
    if name is not None and name in frame.columns:
        pictures = _picture_column(frame[name].tolist())
        frame[name] = ""
    ids = _ids(frame)
    if ids is not None and "sample_id" not in frame.columns:
        frame["sample_id"] = ids
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"the DataFrame cannot be written as a table: {str(error).splitlines()[0]}. Make every "
            "column of one type, text or numbers."
        ) from error
    if pictures is None:
        return table
    return table.set_column(table.column_names.index(str(name)), str(name), pictures)


def _ids(frame: Any) -> list[str] | None:
    """Give the index as text where it is not just a count and tells all rows apart."""
    values = list(frame.index)
    if values == list(range(len(values))):
        return None
    ids = [str(value) for value in values]
    return ids if len(set(ids)) == len(ids) else None


def _picture_column(values: Sequence[Any]) -> pa.Array:
    """Give paths as text; anything else as encoded pictures."""
    if all(isinstance(value, str | os.PathLike) for value in values):
        return pa.array([os.fspath(value) for value in values], pa.string())
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    cells = [_encoded(row, value) for row, value in enumerate(values)]
    return pa.array(cells, kind)


def _encoded(row: int, value: Any) -> dict[str, object]:
    if isinstance(value, bytes):
        return {"bytes": value, "path": f"row {row}"}
    if isinstance(value, dict) and isinstance(value.get("bytes"), bytes):
        return {"bytes": value["bytes"], "path": value.get("path") or f"row {row}"}
    image = value if isinstance(value, Image.Image) else _image_of(row, np.asarray(value))
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, format="PNG")
    return {"bytes": buffer.getvalue(), "path": f"row {row}"}


def _image_of(row: int, pixels: np.ndarray) -> Image.Image:
    """Give pixels as a picture: bytes, or numbers from 0 to 1; channels first or last."""
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[2] not in (1, 3, 4):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.dtype.kind == "f" and pixels.size and pixels.min() >= 0 and pixels.max() <= 1:
        pixels = np.round(pixels * 255).astype(np.uint8)
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or 0 in pixels.shape:
        raise DataError(
            f"row {row}: an array of type {pixels.dtype} and shape {pixels.shape} is no picture. "
            "Pictures are PIL images, paths, uint8 pixels, or numbers from 0 to 1 (not normalised "
            "ones: leave that transform out)."
        )
    return Image.fromarray(np.ascontiguousarray(pixels))


def _hold_pair(folder: Path, X: Any, y: Any) -> Path:
    ids = _ids(X) if hasattr(X, "iloc") else None
    if hasattr(X, "iloc") and getattr(X, "ndim", 1) == 2 and X.shape[1] == 1:
        X = X.iloc[:, 0]
    array = None if _is_listed(X) else _array(X)
    count = len(X) if array is None else len(array)
    labels = None if y is None else _label_array(y, count)
    extra: dict[str, Any] = {} if ids is None else {"sample_id": np.array(ids)}
    if array is None:
        columns: dict[str, Any] = {IMAGE_COLUMNS[0]: _picture_column(list(X))}
        columns |= {} if labels is None else {LABEL_COLUMNS[0]: pa.array(labels.tolist())}
        columns |= {name: pa.array(value.tolist()) for name, value in extra.items()}
        return _write(folder, pa.table(columns))
    if array.ndim == 2 and array.dtype.kind in "biuf":
        array = array.astype(np.float32)
    target = folder / f"{HELD}.npz"
    np.savez(target, **{"X": array, **({} if labels is None else {"y": labels}), **extra})
    return target


def _is_listed(X: Any) -> bool:
    """Tell whether these are single paths or pictures rather than one array."""
    if isinstance(X, list | tuple):
        first: Any = X[0] if len(X) else 0
        return isinstance(first, str | bytes | os.PathLike | Image.Image) or np.ndim(first) > 1
    return getattr(X, "ndim", 1) == 1 and hasattr(X, "__len__")


def _array(X: Any) -> np.ndarray:
    given = X.detach().cpu() if hasattr(X, "detach") else X
    array = np.asarray(given)
    if array.ndim not in (1, 2, 3, 4) or not len(array):
        raise DataError(f"X has shape {array.shape}; {_ACCEPTED}.")
    if array.ndim > 2 and array.dtype != np.uint8:
        raise DataError(
            f"X is an array of type {array.dtype} and shape {array.shape}; pictures are uint8 of "
            "shape (N, H, W) or (N, H, W, C), features are (N, D)."
        )
    if array.ndim == 2 and array.dtype.kind not in "biuf":
        raise DataError(f"X holds {array.dtype}; features are numbers, (N, D).")
    return array


def _label_array(y: Any, count: int) -> np.ndarray:
    given = y.detach().cpu() if hasattr(y, "detach") else y
    if np.ndim(given) == 0 or getattr(given, "ndim", 1) != 1 or len(given) != count:
        shape = getattr(given, "shape", len(given) if hasattr(given, "__len__") else 0)
        raise DataError(f"y has shape {shape}; it needs one label for {count} rows.")
    values = [value.item() if hasattr(value, "item") else value for value in list(given)]
    if {type(value) for value in values} in ({str}, {int}):
        return np.array(values)
    raise DataError(
        "the labels are neither all text nor all whole numbers "
        f"(for example {values[0]!r}); turn them into one of these."
    )


def _dataset_pair(dataset: Any) -> tuple[Any, Any]:
    """Take (X, y) out of a torch Dataset; torchvision's folders give their paths."""
    names = getattr(dataset, "classes", None)
    files = getattr(dataset, "samples", None)
    if isinstance(files, list) and files and isinstance(files[0], tuple) and names:
        return [str(path) for path, _ in files], [names[label] for _, label in files]
    pairs = list(_pairs(dataset))
    labels = [label for _, label in pairs]
    if isinstance(names, list | tuple) and all(isinstance(label, int) for label in labels):
        labels = [str(names[label]) for label in labels]
    X = [x for x, _ in pairs]
    first = X[0]
    if not isinstance(first, Image.Image | str | os.PathLike) and np.ndim(first) == 1:
        return np.stack([np.asarray(x, np.float32) for x in X]), labels
    return X, labels


def _pairs(dataset: Any) -> Iterator[tuple[Any, Any]]:
    if not len(dataset):
        raise DataError("the Dataset is empty; nothing to audit.")
    for row in range(len(dataset)):
        item = dataset[row]
        if not isinstance(item, tuple | list) or len(item) < 2:
            raise DataError(
                f"item {row} of the Dataset is {type(item).__name__}; an audit needs pairs "
                "(picture, label)."
            )
        label = item[1].item() if hasattr(item[1], "item") else item[1]
        yield item[0], label
