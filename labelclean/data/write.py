"""Write a Manifest in any form; what our reader reads back is the same manifest."""

import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from labelclean.atomic import write_bytes
from labelclean.data.cells import json_value, refuse_binary
from labelclean.data.manifest import Manifest
from labelclean.data.marks import EXPORT_MARK, OWN_COLUMNS
from labelclean.data.parquet import parquet_metadata, relative_path, write_parquet
from labelclean.data.places import Place, RemotePath, as_place
from labelclean.data.textfiles import format_text_table
from labelclean.data.write_folder import write_image_folder
from labelclean.errors import ConfigError, OutputError


def write_manifest(
    manifest: Manifest,
    target: str | os.PathLike[str] | Place,
    *,
    raw_csv: bool = False,
    link: bool = False,
) -> Place:
    """Write a manifest; the extension of `target` chooses the form, none means an image folder.

    Relative image paths are made to resolve from where the file is: text files get paths relative
    to their own folder, Parquet keeps the paths and stores where they start from.

    Args:
        manifest: What to write.
        target: .parquet, .csv, .tsv, .jsonl, .npz (arrays only), or a new folder; a URL, too.
        raw_csv: Write CSV and TSV cells as they are, even if a spreadsheet would run them.
        link: In an image folder, link to the pictures instead of copying them.

    Returns:
        The path written.

    Raises:
        ConfigError: The form is unknown.
        OutputError: The form cannot hold this manifest.
    """
    path = target if isinstance(target, RemotePath) else as_place(os.fspath(target))
    suffix = path.suffix.lower()
    if suffix == "" or path.is_dir():
        _write_folder(manifest, path, link=link)
    elif suffix == ".parquet":
        _write_parquet(manifest, path)
    elif suffix == ".npz":
        put_bytes(path, _npz(manifest, path))
    elif suffix in (".csv", ".tsv", ".jsonl"):
        table = _marked(_relocated(manifest, path), manifest, path)
        refuse_binary(table)
        if suffix == ".jsonl":
            put_bytes(path, _jsonl(table))
        else:
            delimiter = "," if suffix == ".csv" else "\t"
            put_bytes(path, format_text_table(table, delimiter, raw=raw_csv))
    else:
        raise ConfigError(
            f"{path}: no writer for {suffix!r}; use .parquet, .csv, .tsv, .jsonl, .npz or a folder."
        )
    return path


def _write_parquet(manifest: Manifest, path: Place) -> None:
    if manifest.arrays is not None:
        raise OutputError(
            f"{manifest.source} holds arrays, which {path.name} cannot carry; "
            "write .npz or an image folder instead."
        )
    metadata = parquet_metadata(manifest, path)
    if isinstance(path, Path):
        write_parquet(path, manifest.table, metadata)
        return
    with tempfile.TemporaryDirectory(prefix="labelclean-") as folder:
        file = Path(folder) / "table.parquet"
        write_parquet(file, manifest.table, metadata)
        path.upload(file)


def put_bytes(target: Place, content: bytes) -> None:
    """Write a file, whole or not at all, here or in a store."""
    if isinstance(target, RemotePath):
        target.write_bytes(content)
    else:
        write_bytes(target, content)


def _write_folder(manifest: Manifest, target: Place, *, link: bool) -> None:
    if isinstance(target, Path):
        write_image_folder(manifest, target, link=link)
        return
    if link:
        raise ConfigError(f"{target}: a store knows no links; leave --link out.")
    if target.files():
        raise OutputError(f"{target} exists and is not an empty folder; name a new one.")
    with tempfile.TemporaryDirectory(prefix="labelclean-") as name:
        folder = Path(name) / "folder"
        write_image_folder(manifest, folder, link=False)
        # The table comes last: without it nobody takes the pictures for a whole data set.
        files = [path for path in folder.rglob("*") if path.is_file()]
        for file in sorted(files, key=lambda path: path.parent == folder):
            RemotePath.upload(_inside(target, file.relative_to(folder)), file)


def _inside(target: RemotePath, path: Path) -> RemotePath:
    return RemotePath(target.protocol, f"{target.key}/{path.as_posix()}")


def _npz(manifest: Manifest, path: Place) -> bytes:
    if manifest.arrays is None:
        raise OutputError(
            f"{path} would need the pictures as one array; write .parquet or a folder instead."
        )
    buffer = io.BytesIO()
    columns: dict[str, Any] = {
        name: np.array(manifest.table.column(name).to_pylist())
        for name in manifest.table.column_names
    }
    objects = [name for name, column in columns.items() if column.dtype == object]
    if objects:
        raise OutputError(
            f"column {objects[0]!r} has missing or mixed values, which .npz cannot carry."
        )
    np.savez_compressed(buffer, X=manifest.arrays, **columns)
    return buffer.getvalue()


def _jsonl(table: pa.Table) -> bytes:
    lines = [
        json.dumps({key: json_value(value) for key, value in row.items()}, ensure_ascii=False)
        for row in table.to_pylist()
    ]
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def _marked(table: pa.Table, manifest: Manifest, path: Place) -> pa.Table:
    """Add a column that says what a text table cannot say otherwise, where our reader needs it.

    It names the image root as seen from the file, so that pictures outside the file's own folder
    and columns of our own are read back without a flag.
    """
    outside = False
    if manifest.image_col in table.column_names and manifest.image_root is not None:
        column = table.column(manifest.image_col)
        written = column.to_pylist() if pa.types.is_string(column.type) else []
        outside = any(text and text.startswith("../") for text in written)
    far = isinstance(manifest.image_root, RemotePath) and manifest.image_root != path.parent
    if not (outside or far) and not set(OWN_COLUMNS) & set(table.column_names):
        return table
    root = "." if manifest.image_root is None else relative_path(manifest.image_root, path.parent)
    if Path(root).is_absolute():
        return table
    return table.append_column(EXPORT_MARK, pa.array([root] * len(table), pa.string()))


def _relocated(manifest: Manifest, path: Place) -> pa.Table:
    """Give the table with image paths that resolve from the folder of `path`."""
    if manifest.arrays is not None:
        raise OutputError(
            f"{manifest.source} holds arrays, which {path.name} cannot carry; "
            "write .npz or an image folder instead."
        )
    name, root = manifest.image_col, manifest.image_root
    if name is None or root is None or root.resolve() == path.parent.resolve():
        return manifest.table
    if isinstance(root, RemotePath) or isinstance(path, RemotePath):
        return manifest.table  # the mark says where the pictures are
    position = manifest.table.column_names.index(name)
    if not pa.types.is_string(manifest.table.schema.field(position).type):
        return manifest.table
    moved = [relative_path(root / text, path.parent) for text in manifest.path]
    return manifest.table.set_column(position, name, pa.array(moved, pa.string()))
