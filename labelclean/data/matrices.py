"""Numbers the user brings beside a manifest: one row of an .npy file for each of its rows."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelclean.data.manifest import Manifest
from labelclean.errors import DataError, shortlist

_BLOCK = 1 << 16  # rows looked at together


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix from a file.

    Args:
        values: (N, D) of a float type, finite; may be mapped from the file.
        source: The file.
        digest: SHA-256 of it.
    """

    values: NDArray[np.floating]
    source: Path
    digest: str


def read_matrix(path: Path, flag: str, manifest: Manifest, *, whole: int) -> Matrix:
    """Read an .npy file with one row of numbers per row of a manifest.

    Args:
        path: The file; never unpickled.
        flag: What it was named with, for messages.
        manifest: Whose rows it is about.
        whole: How many rows the manifest has without --limit.

    Raises:
        DataError: The file cannot be read, or does not fit the manifest.
    """
    try:
        # Mapped, not read: what is looked at in turn need not be held all at once.
        values = np.load(path, mmap_mode="r", allow_pickle=False)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError, EOFError, MemoryError, TypeError, SyntaxError) as error:
        raise DataError(
            f"{flag} {path} is no readable .npy file ({error}); save it with numpy.save."
        ) from error
    if not isinstance(values, np.ndarray) or values.ndim != 2 or not values.size:
        shape = getattr(values, "shape", "several arrays")
        raise DataError(f"{flag} {path} has shape {shape}; it must be (rows, columns).")
    if values.dtype.kind not in "fiu":
        raise DataError(f"{flag} {path} holds {values.dtype}; it must hold numbers.")
    if len(values) not in (len(manifest), whole):
        raise DataError(
            f"{flag} {path} has {len(values)} rows, {manifest.source} has {whole}; there must be "
            "one for each row of the manifest, in its order."
        )
    if manifest.part is not None and len(values) == whole:
        values = values[manifest.part.rows]
    values = values[: len(manifest)]
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    bad = _not_finite(values)
    if len(bad):
        raise DataError(
            f"{flag} {path} holds NaN or infinity in {len(bad)} rows (rows {shortlist(bad)}, "
            "counted from 0); compute them again."
        )
    return Matrix(values, path, digest)


def _not_finite(values: NDArray[np.floating]) -> NDArray[np.int64]:
    """List the rows with NaN or infinity."""
    blocks = range(0, len(values), _BLOCK)
    found = [np.isfinite(values[start : start + _BLOCK]).all(axis=1) for start in blocks]
    return np.flatnonzero(~np.concatenate(found))
