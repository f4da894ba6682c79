"""Keep the paths of a manifest inside its root, also against `..` and symbolic links."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from labelclean.errors import DataError

_DRIVE = re.compile(r"[A-Za-z]:/")


class PathError(DataError):
    """A path of the manifest may not be opened; `reason` says why in a few words."""

    def __init__(self, reason: str, text: str, root: str) -> None:
        super().__init__(reason, text, root)
        self.reason, self.text, self.root = reason, text, root

    def __str__(self) -> str:
        return (
            f"{self.reason}: {self.text!r}, root {self.root!r}. Correct the path, name another "
            "root with --image-root, or accept such paths with --allow-outside-root."
        )


class Confinement:
    """The folder that paths of one manifest must stay in; each sub-folder is resolved once.

    Args:
        root: Folder that relative paths start from.
        allow_outside: Accept paths that leave it.
    """

    def __init__(self, root: Path, allow_outside: bool) -> None:
        self.root = os.path.realpath(root)
        self.allow_outside = allow_outside
        self._inside: dict[str, bool] = {}

    def __reduce__(self) -> tuple[type["Confinement"], tuple[Path, bool]]:
        # What was learnt about folders may be long and is soon learnt again.
        return Confinement, (Path(self.root), self.allow_outside)

    def locate(self, text: str) -> str:
        """Give the full path of what a manifest names; only the last component may be a link.

        Raises:
            PathError: The path is empty, cannot be a path, or its folder leaves the root.
        """
        if not text:
            raise PathError("no path in this row", text, self.root)
        if not _is_path(text):
            raise PathError("the path holds a character no path can hold", text, self.root)
        if not self.allow_outside and self.escapes(text):
            raise PathError("the path leaves the image root", text, self.root)
        return os.path.join(self.root, self._native(text))  # noqa: PTH118 (pathlib: 5 times slower)

    def follow(self, path: str) -> str:
        """Give what a symbolic link points to.

        Raises:
            PathError: It points out of the root.
        """
        target = os.path.realpath(path)
        if not (self.allow_outside or self._holds(target)):
            raise PathError("the symbolic link leaves the image root", path, self.root)
        return target

    def escapes(self, text: str) -> bool:
        """Tell whether the folder part of a path lies outside the root, links followed."""
        text = self._native(text)
        folder, name = os.path.split(text)
        if name in ("", ".", ".."):
            folder = text
        inside = self._inside.get(folder)
        if inside is None:
            inside = self._inside[folder] = self._resolves_inside(folder)
        return not inside

    def _resolves_inside(self, folder: str) -> bool:
        if os.sep == "/" and _DRIVE.match(folder + "/") and not self._exists(folder):
            return False  # absolute on the system that wrote the manifest
        return self._holds(os.path.realpath(os.path.join(self.root, folder)))  # noqa: PTH118

    def _holds(self, resolved: str) -> bool:
        root, resolved = os.path.normcase(self.root), os.path.normcase(resolved)
        return resolved == root or resolved.startswith(root.rstrip(os.sep) + os.sep)

    def _native(self, text: str) -> str:
        """Read backslashes as separators, unless a file of this very name exists."""
        if "\\" not in text or os.sep == "\\" or self._exists(text):
            return text
        return text.replace("\\", "/")

    def _exists(self, text: str) -> bool:
        return os.path.lexists(os.path.join(self.root, text))  # noqa: PTH118


def confine(root: Path, text: str, allow_outside: bool) -> Path:
    """Give the full path of what a manifest names, all links followed.

    Args:
        root: Folder that relative paths start from.
        text: The path as written: relative or absolute, with either kind of separator.
        allow_outside: Accept a path that leaves the root.

    Raises:
        PathError: The path leaves the root or cannot be a path.
    """
    bounds = Confinement(root, allow_outside)
    return Path(bounds.follow(bounds.locate(text)))


def escaping_rows(root: Path, paths: Sequence[str]) -> list[int]:
    """List the rows whose path leaves the root by `..`, as absolute path or by a linked folder.

    Links are followed once for each distinct folder, so a million paths take seconds. A file that
    is itself a link out of the root is found when it is opened, and so is text that is no path.
    """
    bounds = Confinement(root, allow_outside=False)
    return [
        row for row, text in enumerate(paths) if text and _is_path(text) and bounds.escapes(text)
    ]


def _is_path(text: str) -> bool:
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True
