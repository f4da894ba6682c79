"""Tar files of samples as WebDataset writes them: what is in a shard, and where in it."""

import os
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labelclean.data.budget import DEFAULT_BUDGET, Budget
from labelclean.data.images import ImageError, ImageLimits
from labelclean.data.paths import Confinement, PathError
from labelclean.data.places import Place, RemotePath, as_place
from labelclean.data.remote import RemoteBounds
from labelclean.data.shard_copies import local_copy
from labelclean.errors import DataError

ENDING = ".tar"
_BLOCK = 512
_END = bytes(_BLOCK)
_NOT_THERE = "no picture of this name in the shard"


@dataclass(frozen=True, slots=True)
class TarIndex:
    """Where the files of a tar shard are.

    Args:
        file: The shard, or its copy on this machine.
        stamp: Size and time of change when it was looked at.
        members: Name to (offset, size), in the order of the shard.
    """

    file: Path
    stamp: tuple[int, int]
    members: dict[str, tuple[int, int]]


Span = tuple[TarIndex, int, int]
"""A shard, and where in it: offset and size."""


def index_tar(shard: Place, budget: Budget = DEFAULT_BUDGET) -> TarIndex:
    """List the regular files of a tar shard; their content is not read.

    Raises:
        DataError: The shard cannot be read, is truncated, or holds a name twice.
    """
    members: dict[str, tuple[int, int]] = {}
    try:
        file = local_copy(shard) if isinstance(shard, RemotePath) else shard
        with file.open("rb") as opened:
            stamp = _stamp(opened.fileno())
            with tarfile.open(fileobj=opened, mode="r:", errorlevel=1) as archive:
                for member in archive:
                    if not member.isreg():
                        continue
                    if member.name in members:
                        raise DataError(
                            f"{shard}: two files are called {member.name!r}, so two rows would "
                            "have one key; write the shard again with a key for each sample."
                        )
                    members[member.name] = member.offset_data, member.size
                    budget.require_rows(shard, len(members))
                opened.seek(archive.offset)
                ended = archive.offset == 0 or opened.read(_BLOCK) == _END
    except (tarfile.TarError, OSError, ValueError, EOFError) as error:
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or str(error) or "it ends early"
        raise DataError(
            f"{shard} is no complete tar file ({reason}): truncated, or compressed as a whole. "
            "Copy it again, or unpack it to a plain .tar."
        ) from error
    if not ended:
        raise DataError(
            f"{shard} has no end mark: it is truncated after {len(members)} files. Copy it again."
        )
    return TarIndex(file, stamp, members)


def _stamp(handle: int) -> tuple[int, int]:
    found = os.fstat(handle)
    return found.st_size, found.st_mtime_ns


def in_tar(text: str) -> bool:
    """Tell whether a path names a file inside a tar shard."""
    return f"{ENDING}/" in text


def shard_of(text: str) -> str:
    """Give the tar shard of a path like `shard.tar/name.jpg`; empty where it names none."""
    before, inside, _ = text.partition(f"{ENDING}/")
    return before + ENDING if inside else ""


class TarImages:
    """Reads pictures out of tar shards; a shard is indexed when the first of its rows is read.

    Args:
        bounds: The root and whether paths may leave it.
        limits: Caps on a single picture.
    """

    def __init__(self, bounds: Confinement | RemoteBounds, limits: ImageLimits) -> None:
        self.bounds, self.limits = bounds, limits
        self._indexes: dict[str, TarIndex] = {}
        self._remote = isinstance(bounds, RemoteBounds)  # copies may make room for others

    def __reduce__(self) -> "tuple[type[TarImages], tuple[object, ...]]":
        return TarImages, (self.bounds, self.limits)

    def read(self, text: str) -> bytes:
        """Read the file that a path like `shard.tar/name.jpg` names.

        Raises:
            ImageError: There is no such file in the shard.
            DataError: The shard is damaged, or was changed since it was indexed.
        """
        before, _, name = text.partition(f"{ENDING}/")
        shard = before + ENDING
        index = self._index(shard)
        if name not in index.members:
            raise ImageError(_NOT_THERE)
        return read_span(index, shard, *index.members[name], self.limits.max_bytes)

    def spans(self, texts: Sequence[str]) -> "TarSpans":
        """Say where pictures are, for a process that need not know the shards' indexes."""
        return TarSpans([self._span(text) for text in texts], self.limits)

    def _span(self, text: str) -> "Span | str":
        before, _, name = text.partition(f"{ENDING}/")
        try:
            index = self._index(before + ENDING)
        except ImageError as error:
            return error.reason
        place = index.members.get(name)
        return _NOT_THERE if place is None else (_bare(index), *place)

    def _index(self, shard: str) -> TarIndex:
        index = self._indexes.get(shard)
        if index is None or (self._remote and not index.file.exists()):
            try:
                place = as_place(self.bounds.locate(shard))
                if isinstance(place, Path) and isinstance(self.bounds, Confinement):
                    place = Path(self.bounds.follow(str(place)))
            except PathError as error:
                raise ImageError(error.reason) from error
            if isinstance(place, Path) and not place.is_file():
                raise ImageError("no such shard")
            index = self._indexes[shard] = index_tar(place)
        return index


class TarSpans:
    """Where pictures are in tar shards.

    Args:
        found: (N,) shard (without its list of files), offset and size; or why there is none.
        limits: Caps on a single picture.
    """

    def __init__(self, found: Sequence[Span | str], limits: ImageLimits) -> None:
        self.found, self.limits = found, limits

    def read(self, row: int) -> bytes:
        """Read the picture of a row; see `TarImages.read`."""
        span = self.found[row]
        if isinstance(span, str):
            raise ImageError(span)
        index, offset, size = span
        return read_span(index, str(index.file), offset, size, self.limits.max_bytes)


def _bare(index: TarIndex) -> TarIndex:
    return TarIndex(index.file, index.stamp, {})


def read_span(index: TarIndex, shard: str, offset: int, size: int, most: int) -> bytes:
    """Read a part of a shard, never more than the cap and one byte."""
    try:
        with open(index.file, "rb") as opened:  # noqa: PTH123 (pathlib costs as much as the call)
            if _stamp(opened.fileno()) != index.stamp:
                raise DataError(
                    f"the shard {shard} was changed while it was being read. Run again when "
                    "nothing else changes it."
                )
            opened.seek(offset)
            return opened.read(min(size, most + 1))
    except OSError as error:
        raise DataError(
            f"the shard {shard} could be read at first and now cannot: {error.strerror}. Run "
            "again when nothing else changes it."
        ) from error
