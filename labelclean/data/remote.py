"""Pictures in a store: kept inside their root by their names, fetched many at a time."""

import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labelclean.data.images import ImageError, ImageLimits
from labelclean.data.paths import PathError, escaping_rows
from labelclean.data.places import Place, RemotePath, StoreError, as_place, ask, is_url
from labelclean.errors import ConfigError

AHEAD = 32
"""Pictures that are asked for together where they are read in order."""


class RemoteBounds:
    """The folder of a store that paths of one manifest must stay in.

    Args:
        root: Folder that relative paths start from.
        allow_outside: Accept paths that leave it.
    """

    def __init__(self, root: RemotePath, allow_outside: bool) -> None:
        self.place, self.root = root.resolve(), str(root.resolve())
        self.allow_outside = allow_outside

    def locate(self, text: str) -> str:
        """Give the URL of what a manifest names.

        Raises:
            PathError: The path is empty, no path, or leaves the root.
        """
        if not text:
            raise PathError("no path in this row", text, self.root)
        place = self._resolved(text)
        if place is None or "\0" in text:
            raise PathError("the path is none of this store", text, self.root)
        if not self.allow_outside and not self._holds(place):
            raise PathError("the path leaves the image root", text, self.root)
        return str(place)

    def escapes(self, text: str) -> bool:
        """Tell whether a path lies outside the root."""
        place = self._resolved(text)
        return place is None or not self._holds(place)

    def _resolved(self, text: str) -> RemotePath | None:
        if is_url(text):
            try:
                place = as_place(text)
            except ConfigError:
                return None
            return place.resolve() if isinstance(place, RemotePath) else None
        plain = text.replace("\\", "/").lstrip("/") if "\\" in text else text
        key = posixpath.normpath(posixpath.join(self.place.key, plain))
        return RemotePath(self.place.protocol, key.lstrip("/"))

    def _holds(self, place: RemotePath) -> bool:
        same = place.protocol == self.place.protocol
        return same and place.key.startswith(self.place.key.rstrip("/") + "/")


def outside_rows(root: Place, paths: list[str]) -> list[int]:
    """List the rows whose path leaves the root, on a disk or in a store."""
    if isinstance(root, Path):
        return escaping_rows(root, paths)
    bounds = RemoteBounds(root, allow_outside=False)
    return [row for row, text in enumerate(paths) if bounds.escapes(text)]


def fetch(urls: Sequence[str], limits: ImageLimits) -> list[bytes | ImageError]:
    """Read pictures of one store at once, none further than the cap and one byte.

    Args:
        urls: Where they are, all of one protocol.
        limits: Caps on a single picture.

    Returns:
        The content of each, or why there is none.

    Raises:
        StoreError: The store cannot be reached or lets nobody in.
    """
    if not urls:
        return []
    place = as_place(urls[0])
    if not isinstance(place, RemotePath):
        raise TypeError(f"{place} is on this machine")
    stop = limits.max_bytes + 1

    def together(store: Any) -> list[Any]:
        paths = [store._strip_protocol(url) for url in urls]
        ends = [stop] * len(paths)
        found: list[Any] = store.cat_ranges(paths, [0] * len(paths), ends, on_error="return")
        return found

    found = ask(place, together)
    return [
        content if isinstance(content, bytes) else _alone(url, stop, content)
        for url, content in zip(urls, found, strict=True)
    ]


def _alone(url: str, stop: int, fault: object) -> bytes | ImageError:
    """Ask once more for what did not come, and say why if it does not come again."""
    place = as_place(url)
    if isinstance(fault, FileNotFoundError) or not isinstance(place, RemotePath):
        return ImageError("no such file")
    if isinstance(fault, PermissionError):
        return ImageError(f"no permission to read the file: {fault.strerror or fault}")
    try:
        content: bytes = ask(place, lambda store: store.cat_file(str(place), 0, stop))
    except FileNotFoundError:
        return ImageError("no such file")
    except (IsADirectoryError, PermissionError) as error:
        return ImageError(str(error.strerror or error))
    except StoreError:
        if _is_empty(place):  # no store has a first byte of what has none
            return b""
        raise
    return content


def _is_empty(place: RemotePath) -> bool:
    return int(ask(place, lambda store: store.info(str(place))).get("size") or 0) == 0
