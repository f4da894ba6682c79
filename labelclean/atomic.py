"""Files that appear whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SYNC_EACH = 64  # files; more are brought to the disk all at once


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut, where the system can do that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_content(path: Path) -> None:
    """Bring a file, or all files of a folder, to the disk before they get their name."""
    inside = list(path.rglob("*")) if path.is_dir() else [path]
    files = [file for file in inside if file.is_file() and not file.is_symlink()]
    if len(files) > _SYNC_EACH and hasattr(os, "sync"):
        os.sync()
        return
    for file in files:
        with file.open("rb+") as handle:
            os.fsync(handle.fileno())
    for folder in {file.parent for file in files} if path.is_dir() else ():
        sync_folder(folder)


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
        _sync_content(temporary)
        temporary.replace(target)
        complete = True
    finally:
        if not complete:
            remove(temporary)
    sync_folder(target.parent)


def remove_left_over(folder: Path) -> None:
    """Remove temporary files and folders that a process left in `folder` when it was killed."""
    for path in folder.glob(f".*.{'?' * 8}.part"):
        remove(path)


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all it holds; nothing there is fine too."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_bytes(target: Path, content: bytes) -> None:
    """Write one file atomically."""
    with atomic_path(target) as temporary:
        temporary.write_bytes(content)
