"""Which rows show the same picture: content first, then thumbnails, then the pixels themselves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from labelclean.arrays import Bools, Floats, Ints
from labelclean.data.images import ImageError, ImageLimits
from labelclean.data.looks import small_grey
from labelclean.data.manifest import Manifest
from labelclean.data.scan import Scan
from labelclean.data.settings import DataSettings
from labelclean.data.sources import ImageSource, open_source
from labelclean.evidence.duplicates import DuplicateGroups, aligned_likeness, group_duplicates

_SIDE = 48  # pixels of a side that are compared
_PAIRS = 128  # pairs compared at a time


def find_duplicates(scan: Scan, source: ImageSource | NDArray[np.floating]) -> DuplicateGroups:
    """Group the rows of a manifest that show the same picture.

    Args:
        scan: A look at every row.
        source: The pictures, of which only likely pairs are read again; features: rows of the
            same features are grouped.
    """
    if isinstance(source, np.ndarray) or scan.thumbnail is None:
        return group_duplicates(scan.duplicates(), scan.readable, None, None)
    compare = _Pixels(source)
    return group_duplicates(scan.duplicates(), scan.readable, scan.thumbnail, compare)


def duplicates_of(manifest: Manifest, scan: Scan, settings: DataSettings) -> DuplicateGroups:
    """Group the rows of a manifest that show the same picture, wherever its samples are."""
    if manifest.arrays is not None and not manifest.has_images:
        return find_duplicates(scan, manifest.arrays)
    limits = ImageLimits(settings.max_bytes, settings.max_pixels)
    return find_duplicates(scan, open_source(manifest, limits))


@dataclass(frozen=True, slots=True)
class _Pixels:
    """Compares pairs of pictures by their pixels, a few at a time."""

    source: ImageSource

    def __call__(self, pairs: Ints, mirrored: Bools) -> Floats:
        found = [np.zeros(0)]
        for begin in range(0, len(pairs), _PAIRS):
            part, turned = pairs[begin : begin + _PAIRS], mirrored[begin : begin + _PAIRS]
            rows = np.unique(part)
            grey = np.stack([self._grey(int(row)) for row in rows]).astype(np.float32)
            one, other = (grey[np.searchsorted(rows, part[:, at])] for at in (0, 1))
            other = np.where(turned[:, None, None], other[:, :, ::-1], other)
            found.append(aligned_likeness(one, other))
        return np.concatenate(found)

    def _grey(self, row: int) -> NDArray[np.uint8]:
        try:
            pixels = self.source.load(row, _SIDE)[0]
        except ImageError:  # gone since the scan: nothing is said about it
            return np.zeros((_SIDE, _SIDE), np.uint8)
        return small_grey(Image.fromarray(pixels).convert("L"), _SIDE)
