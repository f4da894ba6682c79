"""Pictures of a second data set in the place of the first one's."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from labelclean.data.manifest import Manifest
from labelclean.data.parquet import relative_path
from labelclean.errors import DataError


def replace_pictures(
    manifest: Manifest, second: Manifest, rows: np.ndarray, donors: np.ndarray
) -> Manifest:
    """Put pictures of a second manifest into rows of the first; both must store them alike.

    Paths are written relative to the deepest folder that holds both image roots, so that the
    result still needs no path that leaves its root.

    Args:
        manifest: The samples.
        second: Where the pictures come from.
        rows: (n,) rows of `manifest` that get another picture.
        donors: (n,) rows of `second`.

    Raises:
        DataError: One stores paths and the other bytes or arrays, or arrays of another shape.
    """
    if manifest.arrays is not None and second.arrays is not None:
        return _replace_arrays(manifest, second, rows, donors)
    if manifest.image_col is None or second.image_col is None:
        raise _unlike(manifest, second)
    column = manifest.table.column(manifest.image_col)
    others = second.table.column(second.image_col)
    position = manifest.table.column_names.index(manifest.image_col)
    if _is_path(column) != _is_path(others):
        raise _unlike(manifest, second)
    root, path = manifest.image_root, manifest.path
    if _is_path(column):
        root, path = _common_paths(manifest, second, rows, donors)
        values = path.tolist()
    elif column.type == others.type:
        values = column.to_pylist()
        for row, donor in zip(rows.tolist(), donors.tolist(), strict=True):
            values[row] = others[donor].as_py()
    else:
        raise _unlike(manifest, second)
    pictures = pa.array(values, column.type)
    table = manifest.table.set_column(position, manifest.image_col, pictures)
    return replace(manifest, table=table, path=path, image_root=root)


def _is_path(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _common_paths(
    manifest: Manifest, second: Manifest, rows: np.ndarray, donors: np.ndarray
) -> tuple[Path, np.ndarray]:
    mine, other = _root(manifest), _root(second)
    root = _common_root(mine, other)
    path = manifest.path.copy()
    if root != mine:
        path[:] = [relative_path(mine / text, root) for text in manifest.path]
    for row, donor in zip(rows.tolist(), donors.tolist(), strict=True):
        path[row] = relative_path(other / second.path[donor], root)
    return root, path


def _root(manifest: Manifest) -> Path:
    root = manifest.source.parent if manifest.image_root is None else manifest.image_root
    if not isinstance(root, Path):
        raise DataError(f"{root}: pictures are mixed with others on this machine; copy them here.")
    return root


def _common_root(mine: Path, other: Path) -> Path:
    if other.resolve().is_relative_to(mine.resolve()):
        return mine
    try:
        return Path(os.path.commonpath([mine.resolve(), other.resolve()]))
    except ValueError as error:
        raise DataError(
            f"the pictures in {mine} and {other} are on different drives, so no common folder "
            "exists; copy them to one drive."
        ) from error


def _replace_arrays(
    manifest: Manifest, second: Manifest, rows: np.ndarray, donors: np.ndarray
) -> Manifest:
    mine, other = manifest.arrays, second.arrays
    if (
        mine is None
        or other is None
        or (mine.shape[1:], mine.dtype) != (other.shape[1:], other.dtype)
    ):
        raise _unlike(manifest, second)
    arrays = mine.copy()
    arrays[rows] = other[donors]
    return replace(manifest, arrays=arrays)


def _unlike(manifest: Manifest, second: Manifest) -> DataError:
    return DataError(
        f"{second.source} does not store its samples as {manifest.source} does "
        f"({_form(second)} against {_form(manifest)}); open-set noise needs the same form in both."
    )


def _form(manifest: Manifest) -> str:
    if manifest.arrays is not None:
        return f"arrays of type {manifest.arrays.dtype} and shape {manifest.arrays.shape[1:]}"
    return f"an image column of type {manifest.table.schema.field(manifest.image_col).type}"
