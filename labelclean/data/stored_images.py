"""Pictures in stores and in tar shards, by the paths of a manifest."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labelclean.data.encoded import EncodedImages
from labelclean.data.images import ImageError, ImageLimits
from labelclean.data.paths import Confinement, PathError
from labelclean.data.places import is_url
from labelclean.data.remote import AHEAD, RemoteBounds, fetch
from labelclean.data.tar_shards import TarImages, TarSpans, in_tar

if TYPE_CHECKING:
    from labelclean.data.sources import FileImages

_OWN_MEMORY = "memory://"  # no other process sees what lies there


class StoredImages(EncodedImages):
    """Pictures that a manifest names by path, some of which are not files of this machine.

    Args:
        paths: (N,) paths as the manifest writes them.
        bounds: The root and whether paths may leave it.
        files: Reads what is a file of this machine; None: the root is in a store.
        limits: Caps on a single picture.
    """

    def __init__(
        self,
        paths: Sequence[str],
        bounds: Confinement | RemoteBounds,
        files: "FileImages | None",
        limits: ImageLimits,
    ) -> None:
        self.paths, self.bounds, self.files, self.limits = paths, bounds, files, limits
        self.shards = TarImages(bounds, limits)

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, row: int) -> bytes:
        """Give the encoded picture of a row."""
        text = self.paths[row]
        if in_tar(text):
            return self.shards.read(text)
        if self.files is not None and not is_url(text):
            return self.files.read(row)
        return _one(fetch([_url(self.bounds, text)], self.limits)[0])

    def part(self, start: int, stop: int) -> "EncodedImages":
        """Take some rows; see `sources.ImageSource`."""
        paths = self.paths[start:stop]
        if all(in_tar(path) for path in paths):
            return TarPart(self.shards.spans(paths))
        if self.files is None:
            ahead = RemotePart(paths, self.bounds, self.limits)
            return ahead.fetched() if str(self.bounds.root).startswith(_OWN_MEMORY) else ahead
        return StoredImages(paths, self.bounds, self.files.part(start, stop), self.limits)


class TarPart(EncodedImages):
    """Consecutive rows in tar shards.

    Args:
        spans: Where they are.
    """

    def __init__(self, spans: TarSpans) -> None:
        self.spans, self.limits = spans, spans.limits

    def __len__(self) -> int:
        return len(self.spans.found)

    def read(self, row: int) -> bytes:
        """Give the encoded picture of a row."""
        return self.spans.read(row)

    def part(self, start: int, stop: int) -> "TarPart":
        """Take some rows; see `sources.ImageSource`."""
        return TarPart(TarSpans(self.spans.found[start:stop], self.limits))


class RemotePart(EncodedImages):
    """Consecutive rows in a store, read in order, many at a time.

    Args:
        paths: (N,) paths as the manifest writes them.
        bounds: The root and whether paths may leave it.
        limits: Caps on a single picture.
    """

    def __init__(
        self, paths: Sequence[str], bounds: Confinement | RemoteBounds, limits: ImageLimits
    ) -> None:
        self.paths, self.bounds, self.limits = paths, bounds, limits
        self._ahead: dict[int, bytes | ImageError] = {}

    def __len__(self) -> int:
        return len(self.paths)

    def part(self, start: int, stop: int) -> "RemotePart":
        """Take some rows; see `sources.ImageSource`."""
        return RemotePart(self.paths[start:stop], self.bounds, self.limits)

    def read(self, row: int) -> bytes:
        """Give the encoded picture of a row, and ask for the next ones with it."""
        if row not in self._ahead:
            self._ahead = self._fetch(range(row, min(row + AHEAD, len(self.paths))))
        return _one(self._ahead.pop(row))

    def fetched(self) -> "Fetched":
        """Give the same rows with their content, for processes that cannot reach it."""
        found = self._fetch(range(len(self.paths)))
        return Fetched([found[row] for row in range(len(self.paths))], self.limits)

    def _fetch(self, rows: range) -> dict[int, bytes | ImageError]:
        found: dict[int, bytes | ImageError] = {}
        urls: dict[int, str] = {}
        for row in rows:
            try:
                urls[row] = _url(self.bounds, self.paths[row])
            except ImageError as error:
                found[row] = error
        content = fetch(list(urls.values()), self.limits)
        return found | dict(zip(urls, content, strict=True))


class Fetched(EncodedImages):
    """Rows whose content is here.

    Args:
        content: (N,) encoded pictures, or why there is none.
        limits: Caps on a single picture.
    """

    def __init__(self, content: Sequence[bytes | ImageError], limits: ImageLimits) -> None:
        self.content, self.limits = content, limits

    def __len__(self) -> int:
        return len(self.content)

    def part(self, start: int, stop: int) -> "Fetched":
        """Take some rows; see `sources.ImageSource`."""
        return Fetched(self.content[start:stop], self.limits)

    def read(self, row: int) -> bytes:
        """Give the encoded picture of a row."""
        return _one(self.content[row])


def _url(bounds: Confinement | RemoteBounds, text: str) -> str:
    """Give the URL of a row, if it may be opened."""
    try:
        if isinstance(bounds, RemoteBounds):
            return bounds.locate(text)
        if not bounds.allow_outside:
            raise PathError("the path leaves the image root", text, bounds.root)
    except PathError as error:
        raise ImageError(error.reason) from error
    return text


def _one(found: bytes | ImageError) -> bytes:
    if isinstance(found, ImageError):
        raise found
    return found
