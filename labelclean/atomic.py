"""Files that appear whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut, where the system can do that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Give a temporary name beside `target`; what was written there replaces it at the end.

    The block may write a file or a folder. If it raises, the temporary one is removed and `target`
    stays as it was. A folder only takes a name that is free.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f".{target.name[:100]}.{secrets.token_hex(4)}.part"
    complete = False
    try:
        yield temporary
        if temporary.is_file():
            with temporary.open("rb+") as handle:
                os.fsync(handle.fileno())
        temporary.replace(target)
        complete = True
    finally:
        if not complete and temporary.is_dir():
            shutil.rmtree(temporary)
        elif not complete:
            temporary.unlink(missing_ok=True)
    sync_folder(target.parent)


def write_bytes(target: Path, content: bytes) -> None:
    """Write one file atomically."""
    with atomic_path(target) as temporary:
        temporary.write_bytes(content)
