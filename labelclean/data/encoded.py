"""A source whose rows are encoded pictures, wherever they come from."""

import hashlib

import numpy as np

from labelclean.data.images import ImageLimits, decode_image, inspect_image
from labelclean.data.looks import Look


class EncodedImages:
    """What files, shards and embedded bytes share: rows are encoded pictures."""

    limits: ImageLimits

    def __len__(self) -> int:
        raise NotImplementedError

    def part(self, start: int, stop: int) -> "EncodedImages":
        """Take some rows; see `sources.ImageSource`."""
        raise NotImplementedError

    def read(self, row: int) -> bytes:
        """Give the encoded picture of a row."""
        raise NotImplementedError

    def load(self, row: int, min_side: int | None = None) -> tuple[np.ndarray, bytes]:
        """Decode a row; see `sources.ImageSource`."""
        encoded = self.read(row)
        pixels = decode_image(encoded, limits=self.limits, min_side=min_side)
        return pixels, hashlib.sha256(encoded).digest()

    def inspect(self, row: int) -> tuple[int, int, bytes, Look]:
        """Check a row; see `sources.ImageSource`."""
        encoded = self.read(row)
        width, height, seen = inspect_image(encoded, limits=self.limits)
        return width, height, hashlib.sha256(encoded).digest(), seen
