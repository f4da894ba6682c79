"""Copies of remote shards on this machine: a tar file has no list of contents but itself."""

import hashlib
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labelclean.data.places import RemotePath, StoreError, ask
from labelclean.errors import DataError
from labelclean.options import cache_folder

MOST_COPIED = 16 * 2**30
"""Bytes of shards that are kept; the longest unused make room."""
_VERSION = ("ETag", "etag", "md5", "mtime", "LastModified", "last_modified", "created")


def local_copy(shard: RemotePath, most: float = MOST_COPIED) -> Path:
    """Give a whole copy of a shard as it is now, fetched if there is none yet.

    Args:
        shard: Where it is.
        most: Bytes of copies that are kept.

    Raises:
        DataError: It is not there, or does not come whole.
        StoreError: The store cannot be reached or lets nobody in.
    """
    try:
        info: Mapping[str, Any] = ask(shard, lambda store: store.info(str(shard)))
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else str(error)
        raise DataError(f"the shard {shard} cannot be read: {reason}.") from error
    version = next((str(info[name]) for name in _VERSION if info.get(name)), "")
    size = info.get("size")
    mark = hashlib.sha256(f"{shard} {size} {version}".encode()).hexdigest()[:32]
    folder = cache_folder(None) / "shards"
    copy = folder / f"{mark}.tar"
    if copy.is_file():
        os.utime(copy, ns=(time.time_ns(), copy.stat().st_mtime_ns))
        return copy
    folder.mkdir(parents=True, exist_ok=True)
    _make_room(folder, most - (size or 0))
    part = folder / f".{mark}.{secrets.token_hex(4)}.part"
    try:
        ask(shard, lambda store: store.get_file(str(shard), str(part)))
        if size is not None and part.stat().st_size != size:
            raise StoreError(
                f"the shard {shard} came as {part.stat().st_size} of {size} bytes: it is cut off "
                "on the way, or was changed. Try again."
            )
        part.replace(copy)
    finally:
        part.unlink(missing_ok=True)
    return copy


def _make_room(folder: Path, most: float) -> None:
    found = [(path, path.stat()) for path in folder.glob("*.tar")]
    copies = sorted((stat.st_atime_ns, stat.st_size, path) for path, stat in found)
    total = sum(size for _, size, _ in copies)
    for _, size, path in copies:
        if total <= most:
            return
        path.unlink(missing_ok=True)
        total -= size
