"""Where pixels come from: files, bytes inside a table, or an array; one row at a time."""

import errno
import hashlib
import os
import stat
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from PIL import Image

from labelclean.data.encoded import EncodedImages
from labelclean.data.images import (
    DEFAULT_LIMITS,
    ImageError,
    ImageLimits,
    over_background,
)
from labelclean.data.looks import Look, look_at
from labelclean.data.paths import Confinement, PathError
from labelclean.data.places import Place, RemotePath, is_url
from labelclean.data.remote import RemoteBounds
from labelclean.data.stored_images import StoredImages
from labelclean.data.tar_shards import in_tar
from labelclean.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from labelclean.data.manifest import Manifest

_OS_REASONS = {
    errno.ENOENT: "no such file",
    errno.ENOTDIR: "no such file",
    errno.EACCES: "no permission to read the file",
    errno.EPERM: "no permission to read the file",
    errno.ELOOP: "a loop of symbolic links",
    errno.ENAMETOOLONG: "the file name is too long",
}
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class ImageSource(Protocol):
    """Pictures of N samples by row; can be pickled, so it can be handed to other processes."""

    def __len__(self) -> int: ...

    def load(self, row: int, min_side: int | None = None) -> tuple[np.ndarray, bytes]:
        """Give the pixels, (H, W, 3) uint8, and the 32-byte SHA-256 of the content as stored.

        Args:
            row: Row of the sample.
            min_side: Shorter side that is enough; see `decode_image`.

        Raises:
            ImageError: This row cannot be read.
        """
        ...

    def inspect(self, row: int) -> tuple[int, int, bytes, Look]:
        """Give width, height, digest and looks after decoding the picture without keeping it.

        Raises:
            ImageError: As `load` would.
        """
        ...

    def part(self, start: int, stop: int) -> "ImageSource":
        """Give the rows from `start` to before `stop` as a source that carries nothing else."""
        ...


class FileImages(EncodedImages):
    """Pictures in files below a root.

    Args:
        paths: (N,) paths as the manifest writes them.
        bounds: The root and whether paths may leave it.
        limits: Caps on a single picture.
    """

    def __init__(self, paths: Sequence[str], bounds: Confinement, limits: ImageLimits) -> None:
        self.paths, self.bounds, self.limits = paths, bounds, limits

    def __len__(self) -> int:
        return len(self.paths)

    def part(self, start: int, stop: int) -> "FileImages":
        """Take some rows; see `ImageSource.part`."""
        return FileImages(self.paths[start:stop], self.bounds, self.limits)

    def read(self, row: int) -> bytes:
        """Read a regular file, never more than the cap and one byte."""
        try:
            path = self.bounds.locate(self.paths[row])
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode):
                path = self.bounds.follow(path)
                found = os.stat(path)  # noqa: PTH116 (pathlib costs as much as the call)
            if not stat.S_ISREG(found.st_mode):
                kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
                raise ImageError(f"{kind}, not a file")
            with open(path, "rb") as file:  # noqa: PTH123 (as above)
                return file.read(min(found.st_size, self.limits.max_bytes) + 1)
        except PathError as error:
            raise ImageError(error.reason) from error
        except OSError as error:
            text = (error.strerror or str(error)).lower()
            raise ImageError(_OS_REASONS.get(error.errno or 0, text)) from error


EncodedFiles = FileImages | StoredImages
"""Pictures that are named by paths."""


class EmbeddedImages(EncodedImages):
    """Pictures as bytes in a table.

    Args:
        encoded: (N,) bytes or None: a list, or a pyarrow column, which is read row by row.
        files: Where to look for rows without bytes; None: nowhere.
        limits: Caps on a single picture.
    """

    def __init__(
        self,
        encoded: Sequence[bytes | None],
        files: EncodedImages | None,
        limits: ImageLimits,
    ) -> None:
        self.encoded, self.files, self.limits = encoded, files, limits

    def __len__(self) -> int:
        return len(self.encoded)

    def part(self, start: int, stop: int) -> "EmbeddedImages":
        """Take some rows out of the column, so that no other process needs pyarrow."""
        rows = [_as_bytes(value) for value in self.encoded[start:stop]]
        if self.files is None or None not in rows:
            return EmbeddedImages(rows, None, self.limits)
        return EmbeddedImages(rows, self.files.part(start, stop), self.limits)

    def read(self, row: int) -> bytes:
        """Give the bytes of a row, or those of the file it names instead."""
        encoded = _as_bytes(self.encoded[row])
        if encoded is not None:
            return encoded
        if self.files is None:
            raise ImageError("no image in this row")
        return self.files.read(row)


class ArrayImages:
    """Pictures in one array.

    Args:
        pixels: (N, H, W) or (N, H, W, C) uint8; C is 1 (grey), 3 (RGB) or 4 (RGB and alpha).
    """

    def __init__(self, pixels: np.ndarray) -> None:
        self.pixels = pixels

    def __len__(self) -> int:
        return len(self.pixels)

    def part(self, start: int, stop: int) -> "ArrayImages":
        """Take some rows; see `ImageSource.part`."""
        return ArrayImages(self.pixels[start:stop])

    def load(self, row: int, min_side: int | None = None) -> tuple[np.ndarray, bytes]:
        """Give a row as RGB; see `ImageSource.load`."""
        pixels = self.pixels[row]
        digest = array_digest(pixels)
        if pixels.ndim == 2:
            pixels = pixels[..., None]
        if pixels.shape[2] == 4:
            return over_background(pixels[..., :3], pixels[..., 3]), digest
        return np.array(np.broadcast_to(pixels, (*pixels.shape[:2], 3))), digest

    def inspect(self, row: int) -> tuple[int, int, bytes, Look]:
        """Give size, digest and looks; an array cannot be damaged."""
        pixels, digest = self.load(row)
        return pixels.shape[1], pixels.shape[0], digest, look_at(Image.fromarray(pixels))


def array_digest(values: np.ndarray) -> bytes:
    """Give the SHA-256 of an array's type, shape and content, wherever it lies in memory."""
    head = f"{values.dtype.str}{values.shape}".encode()
    return hashlib.sha256(head + values.tobytes()).digest()


def open_source(manifest: "Manifest", limits: ImageLimits = DEFAULT_LIMITS) -> ImageSource:
    """Find out where a manifest's pictures are.

    Args:
        manifest: The samples.
        limits: Caps on a single picture.

    Raises:
        DataError: The manifest holds feature vectors, or arrays that are no pictures.
    """
    if manifest.arrays is not None:
        return _from_arrays(manifest.arrays, manifest.source)
    if manifest.image_col is not None:
        column = manifest.table[manifest.image_col]
        if "binary" in str(column.type) and column.type.num_fields == 0:
            return EmbeddedImages(column, None, limits)
        if column.type.num_fields > 0:
            return _from_struct(manifest, column, limits)
    return _files(manifest, manifest.path.tolist(), limits)


def _files(manifest: "Manifest", paths: list[str], limits: ImageLimits) -> EncodedFiles:
    root = manifest.source.parent if manifest.image_root is None else manifest.image_root
    return path_source(paths, root, manifest.allow_outside_root, limits)


def path_source(
    paths: list[str], root: Place, allow_outside: bool, limits: ImageLimits = DEFAULT_LIMITS
) -> EncodedFiles:
    """Give the source of pictures that are named by paths.

    Args:
        paths: (N,) paths as a manifest writes them.
        root: Where they start from.
        allow_outside: Whether they may leave it.
        limits: Caps on a single picture.
    """
    if isinstance(root, RemotePath):
        return StoredImages(paths, RemoteBounds(root, allow_outside), None, limits)
    bounds = Confinement(root, allow_outside)
    files = FileImages(paths, bounds, limits)
    elsewhere = any(in_tar(path) or is_url(path) for path in paths)
    return StoredImages(paths, bounds, files, limits) if elsewhere else files


def _from_arrays(arrays: np.ndarray, where: Place) -> ArrayImages:
    shape = arrays.shape
    known = arrays.ndim == 3 or (arrays.ndim == 4 and shape[3] in (1, 3, 4))
    if not known or arrays.dtype != np.uint8 or 0 in shape[1:]:
        raise DataError(
            f"{where}: an array of type {arrays.dtype} and shape {shape} holds no pictures; "
            "expected uint8 of shape (N, H, W) or (N, H, W, C) with C of 1, 3 or 4."
        )
    return ArrayImages(arrays)


def _from_struct(
    manifest: "Manifest", column: "pa.ChunkedArray", limits: ImageLimits
) -> ImageSource:
    fields = {column.type.field(i).name: i for i in range(column.type.num_fields)}
    if "bytes" not in fields:
        raise DataError(
            f"{manifest.source}: column {manifest.image_col!r} is of type {column.type}; an image "
            "column holds paths, bytes, or a struct with the fields bytes and path."
        )
    parts = column.flatten()
    files = None
    if "path" in fields:
        paths = [text or "" for text in parts[fields["path"]].to_pylist()]
        files = _files(manifest, paths, limits)
    return EmbeddedImages(parts[fields["bytes"]], files, limits)


def _as_bytes(value: object) -> bytes | None:
    """Take a value out of pyarrow, if it is in there."""
    plain = value.as_py() if hasattr(value, "as_py") else value
    return plain if isinstance(plain, bytes) else None
