"""Our Parquet files: one encoding, and metadata that says where they come from."""

import io
import json
import os
import posixpath
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from labelclean import __version__
from labelclean.atomic import atomic_path
from labelclean.data.manifest import Manifest
from labelclean.data.places import Place, RemotePath, same_store
from labelclean.data.tables import METADATA_KEY

SCHEMA_VERSION = 1
GROUP_ROWS = 1 << 17  # what is encoded at a time, and held in memory for it


def parquet_metadata(manifest: Manifest, path: Place, **more: object) -> dict[bytes, bytes]:
    """Give our entry for the schema metadata of a Parquet file written at `path`."""
    origin: dict[str, object] = {"tool": f"labelclean {__version__}", "schema": SCHEMA_VERSION}
    if manifest.image_root is not None:
        root = relative_path(manifest.image_root, path.parent)
        if isinstance(path, Path) or not Path(root).is_absolute():
            origin["image_root"] = root
    return {METADATA_KEY: json.dumps({**origin, **more}, sort_keys=True).encode()}


def encode_parquet(table: pa.Table, metadata: dict[bytes, bytes]) -> bytes:
    """Encode a table as Parquet, dictionary-encoded and zstd-compressed."""
    buffer = io.BytesIO()
    _encode(table, metadata, buffer)
    return buffer.getvalue()


def write_parquet(target: Path, table: pa.Table, metadata: dict[bytes, bytes]) -> None:
    """Write a table as Parquet, whole or not at all, without a second copy of it in memory."""
    with atomic_path(target) as temporary, temporary.open("wb") as file:
        _encode(table, metadata, file)


def _encode(table: pa.Table, metadata: dict[bytes, bytes], file: BinaryIO) -> None:
    kept = {**(table.schema.metadata or {}), **metadata}
    pq.write_table(
        table.replace_schema_metadata(kept), file, compression="zstd", row_group_size=GROUP_ROWS
    )


def relative_path(path: Place, start: Place) -> str:
    """Give `path` as seen from the folder `start`, with forward slashes; from afar all of it."""
    if isinstance(path, RemotePath) or isinstance(start, RemotePath):
        return _from_afar(path, start)
    # Links on the way are resolved in both, else ".." would climb out of the wrong folder; the
    # last part stays as it is, so that a linked picture keeps its name.
    real = path.parent.resolve() / path.name
    try:
        return Path(os.path.relpath(real, start.resolve())).as_posix()
    except ValueError:  # another drive on Windows: no relative path exists
        return real.as_posix()


def _from_afar(path: Place, start: Place) -> str:
    if isinstance(path, Path):
        return path.resolve().as_posix()
    if isinstance(start, Path) or not same_store(path, start):
        return str(path)
    return posixpath.relpath(path.key, start.key)
