"""Where data lies: a path on this machine, or a URL of a store, asked with the same few words.

Stores are reached through fsspec, which is loaded when the first URL is opened. Credentials come
from where each store's own tools look for them, never from a URL.
"""

import errno
import posixpath
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from labelclean.errors import ConfigError, DataError, OutputError

PROTOCOLS = (
    "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "hf", "http", "https", "memory",
)  # fmt: skip
"""Stores that a URL may name, beside file:// for this machine."""
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_INSIDE = re.compile(r"[^/]*@")
_TRIES, _PAUSE = 3, 0.5  # of requests that fail on the way, and seconds between the first two
_T = TypeVar("_T")


class StoreError(DataError):
    """A store cannot be reached or does not let us in: nothing is known about what lies there."""


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A place in a store; has what manifests need of pathlib's words.

    Args:
        protocol: For example `s3`.
        key: What follows `://`, without a slash at its end.
    """

    protocol: str
    key: str

    def __str__(self) -> str:
        return f"{self.protocol}://{self.key}"

    def __truediv__(self, text: str) -> "Place":
        if is_url(text):
            return as_place(text)
        return RemotePath(self.protocol, posixpath.join(self.key, text).rstrip("/"))

    @property
    def name(self) -> str:
        """The last component."""
        return posixpath.basename(self.key)

    @property
    def suffix(self) -> str:
        """The ending of the name, with its dot."""
        return posixpath.splitext(self.name)[1]

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return posixpath.splitext(self.name)[0]

    @property
    def parent(self) -> "RemotePath":
        """The folder it lies in; a bucket or host has none above it."""
        return RemotePath(self.protocol, posixpath.dirname(self.key) or self.key)

    @property
    def parents(self) -> "list[RemotePath]":
        """All folders it lies in, the nearest first."""
        found, here = [], self
        while here.parent != here:
            here = here.parent
            found.append(here)
        return found

    def resolve(self) -> "RemotePath":
        """Give the place without `.` and `..`."""
        return RemotePath(self.protocol, posixpath.normpath(self.key))

    def as_posix(self) -> str:
        """Give the URL."""
        return str(self)

    def exists(self) -> bool:
        """Whether something is there."""
        return bool(ask(self, lambda store: store.exists(str(self))))

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return bool(ask(self, lambda store: store.isdir(str(self))))

    def is_file(self) -> bool:
        """Whether it is a file."""
        return bool(ask(self, lambda store: store.isfile(str(self))))

    def read_bytes(self) -> bytes:
        """Read all of it."""
        content: bytes = ask(self, lambda store: store.cat_file(str(self)))
        return content

    def files(self) -> list[str]:
        """List all files below, as seen from here, in order."""
        root = self.key if self.protocol != "memory" else f"/{self.key}"
        start = f"{root.rstrip('/')}/"

        def find(store: Any) -> list[str]:
            found = [str(name) for name in store.find(str(self))]
            return sorted(n.split("://", 1)[-1].removeprefix(start) for n in found)

        return ask(self, find)

    def write_bytes(self, content: bytes) -> None:
        """Write all of it; a store shows an object whole or not at all."""
        self._put(lambda store: store.pipe_file(str(self), content))

    def upload(self, file: Path) -> None:
        """Write what a file on this machine holds."""
        self._put(lambda store: store.put_file(str(file), str(self)))

    def _put(self, work: Callable[[Any], object]) -> None:
        try:
            ask(self, work)
        except (StoreError, FileNotFoundError, PermissionError) as error:
            raise OutputError(f"{self} cannot be written: {_first_line(error)}") from error


Place = Path | RemotePath
"""Where a manifest, a picture or an export lies."""


def is_url(text: str) -> bool:
    """Tell whether a text names its protocol; a drive of Windows is none."""
    return _URL.match(text) is not None


def as_place(text: "str | Place") -> Place:
    """Give the place a user names.

    Raises:
        ConfigError: The URL is of an unknown kind, or carries credentials.
    """
    if isinstance(text, RemotePath):
        return text
    found = _URL.match(str(text))
    if found is None:
        return Path(text)
    protocol, key = found[1].lower(), str(text)[found.end() :]
    if protocol == "file":
        return Path("/" + key.lstrip("/"))
    if protocol not in PROTOCOLS or "::" in key:
        raise ConfigError(
            f"{text!r} is no URL that is read here; use one of {', '.join(PROTOCOLS)} or file."
        )
    if protocol not in ("abfs", "abfss") and _INSIDE.match(key):
        shown = f"{protocol}://...@{_INSIDE.sub('', key, count=1)}"
        raise ConfigError(
            f"{shown} carries a name or a password. Leave them out of the URL: credentials are "
            "taken from the environment and the files where the store's own tools look for them."
        )
    return RemotePath(protocol, key.strip("/"))


def join(folder: Place, text: str) -> Place:
    """Give what `text` names as seen from a folder; a URL stands for itself."""
    return as_place(text) if is_url(text) else folder / text


def same_store(one: RemotePath, other: RemotePath) -> bool:
    """Tell whether two places are of one bucket or host."""
    first, second = (place.key.split("/", 1)[0] for place in (one, other))
    return one.protocol == other.protocol and first == second


def ask(place: RemotePath, work: Callable[[Any], _T]) -> _T:
    """Ask a store something, again where the way to it fails.

    Args:
        place: Where it is about.
        work: Given the fsspec file system.

    Raises:
        StoreError: It cannot be reached, or lets nobody in.
        FileNotFoundError: There is no such object.
        PermissionError: This object may not be read.
    """
    store, left = _open(place), _TRIES
    while True:
        left -= 1
        try:
            return work(store)
        except (FileNotFoundError, IsADirectoryError):
            raise
        except PermissionError as error:
            raise PermissionError(
                errno.EACCES, f"the store refuses access ({_first_line(error)})"
            ) from error
        except _ways(place) as error:
            if "credentials" in str(error).lower():
                raise StoreError(
                    f"{place}: no credentials for {place.protocol}:// were found in the "
                    "environment. Set them as the store's own tools want them (for S3 "
                    "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)."
                ) from error
            if not left:
                raise StoreError(
                    f"{place} cannot be reached: {_first_line(error)}. Check the network, the "
                    "endpoint and the name, then try again."
                ) from error
            time.sleep(_PAUSE * (_TRIES - left))


def _ways(place: RemotePath) -> tuple[type[BaseException], ...]:
    """Name what may be raised on the way to a store."""
    kinds: tuple[type[BaseException], ...] = (OSError, TimeoutError, ValueError)
    if place.protocol in ("s3", "s3a"):
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 (an extra)

        kinds = (*kinds, BotoCoreError, ClientError)
    if place.protocol in ("http", "https"):
        from aiohttp import ClientError as HttpError  # noqa: PLC0415 (an extra)

        kinds = (*kinds, HttpError)
    return kinds


def _open(place: RemotePath) -> Any:
    import fsspec  # noqa: PLC0415 (only where a URL is opened)

    try:
        return fsspec.filesystem(place.protocol)
    except ImportError as error:
        raise ConfigError(
            f"{place.protocol}:// needs a package that is not installed ({error}). "
            "pip install 'labelclean[remote]' brings what s3:// and https:// need."
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300] or type(error).__name__
