"""Pictures for the page: decoded under the audit's caps, encoded anew, without any metadata."""

import io
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Load = Callable[[int], NDArray[np.uint8]]
SIDE = 256
_TINY = SIDE // 2
_LOSSLESS_PIXELS = 1_000_000
_LONGEST_JPEG = 65_000
# A picture at the cap takes a few hundred megabytes while it is decoded.
_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Encoded:
    """A picture to be sent."""

    content: bytes
    media_type: str


class Pictures:
    """The pictures of a run by row.

    Args:
        load: Row to pixels (H, W, 3) uint8; raises DataError where a picture cannot be read.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._turn = threading.BoundedSemaphore(_AT_ONCE)

    def small(self, row: int) -> Encoded:
        """Give a picture for a list; tiny ones are enlarged without smoothing."""
        with self._turn:
            image = Image.fromarray(self._load(row))
            if max(image.size) < _TINY:
                factor = SIDE // max(image.size)
                size = (image.width * factor, image.height * factor)
                image = image.resize(size, Image.Resampling.NEAREST)
            image.thumbnail((SIDE, SIDE))
            return _encode(image, lossless=False)

    def whole(self, row: int) -> Encoded:
        """Give a picture in its full resolution."""
        with self._turn:
            image = Image.fromarray(self._load(row))
            few = image.width * image.height <= _LOSSLESS_PIXELS
            return _encode(image, lossless=few or max(image.size) > _LONGEST_JPEG)


def _encode(image: Image.Image, *, lossless: bool) -> Encoded:
    buffer = io.BytesIO()
    if lossless:
        image.save(buffer, format="PNG")
        return Encoded(buffer.getvalue(), "image/png")
    image.save(buffer, format="JPEG", quality=90)
    return Encoded(buffer.getvalue(), "image/jpeg")
