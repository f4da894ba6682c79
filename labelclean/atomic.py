"""Files that appear whole or not at all, and have one writer at a time."""

import errno
import json
import logging
import os
import platform
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path

from labelclean.errors import OutputError

LOCK = ".labelclean.lock"
"""In a folder that one process writes into: who that is; removed when it is done."""
_SYNC_EACH = 64  # files; more are brought to the disk all at once
_POLL, _PATIENCE = 0.1, 1.0  # seconds between two tries, and for a holder to say who it is
_LOCKED_BYTE = 1 << 30  # on Windows, far behind what others must be able to read
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
_log = logging.getLogger(__name__)
_mine: ContextVar[frozenset[Path]] = ContextVar("_mine", default=frozenset())
"""What this thread holds already: a command that calls another one does not wait for itself."""


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


def folder_lock(folder: Path) -> Path:
    """Give the lock file of a folder that is written into."""
    return folder / LOCK


def target_lock(target: Path) -> Path:
    """Give the lock file of a file, or of a folder that is replaced as a whole."""
    return target.parent / f".{target.name[:200]}.lock"


@contextmanager
def one_writer(
    lock: Path,
    what: str,
    *,
    wait: Callable[[str], object] | None = None,
    needed: bool = True,
    alone: bool = False,
) -> Iterator[None]:
    """Let nobody else write while the block runs; the lock ends with the process, however it ends.

    Args:
        lock: The lock file; its folder is made, and removed again if nothing came into it.
        what: Who we are, for those who come second.
        wait: Told for whom we wait until the place is free; None: we do not.
        needed: False where another process of the same job holds the lock for all, or where there
            is no such folder to write into.
        alone: Refuse this very thread, too, if it holds the lock; else a command may call another.

    Raises:
        OutputError: Another process writes there, and we do not wait.
    """
    key = Path(os.path.abspath(lock))  # noqa: PTH100 (resolve() asks the disk, which may be away)
    if not needed or (key in _mine.get() and not alone):
        yield
        return
    new = [folder for folder in (lock.parent, *lock.parent.parents) if not folder.exists()]
    handle = _take(lock, wait)
    held = _mine.set(_mine.get() | {key})
    try:
        now = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        who = {"command": what, "process": os.getpid(), "host": platform.node(), "since": now}
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(who).encode())
        yield
    finally:
        _mine.reset(held)
        _give_back(lock, handle)
        with suppress(OSError):  # somebody has written there, which is what it was made for
            for folder in new:
                folder.rmdir()


def _take(lock: Path, wait: Callable[[str], object] | None) -> int:
    told, patience = False, time.monotonic() + _PATIENCE
    while True:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # who had it before has just removed the folder
            continue
        if _locked(handle):
            if _same_file(lock, handle):
                return handle
            os.close(handle)  # it was removed with its holder, and locks nothing
            continue
        os.close(handle)
        who = _holder(lock)
        if wait is None and (who is not None or time.monotonic() > patience):
            raise OutputError(
                f"{_place(lock)} is in use: {who or 'another process'} writes there. Let that end "
                "first, use --wait to queue behind it, or name another place."
            )
        if wait is not None and who is not None and not told:
            wait(f"waiting for {_place(lock)}: {who} writes there")
            told = True
        time.sleep(_POLL)


def _locked(handle: int) -> bool:
    """Try to lock an open file."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 (of this system alone)

            os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(handle, 0, os.SEEK_SET)
        else:
            import fcntl  # noqa: PLC0415 (not there on Windows)

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            return False
        _log.warning("this file system knows no locks: see to it yourself that one command writes")
    return True


def _give_back(lock: Path, handle: int) -> None:
    """Remove the lock file and let go; whoever waits for the removed one looks again."""
    if os.name == "posix":
        lock.unlink(missing_ok=True)
        os.close(handle)
        return
    os.close(handle)
    with suppress(OSError):  # here nothing that is open can be removed: the next one has it
        lock.unlink(missing_ok=True)


def _same_file(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except OSError:
        return False


def _place(lock: Path) -> Path:
    return lock.parent if lock.name == LOCK else lock.with_name(lock.name[1 : -len(".lock")])


def _holder(lock: Path) -> str | None:
    """Say who writes; None while somebody is just beginning or ending."""
    try:
        who = json.loads(lock.read_bytes())
        return (
            f"`labelclean {who['command']}` (process {who['process']} on {who['host']}, since "
            f"{who['since']})"
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
