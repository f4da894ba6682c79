"""Pictures for the page: decoded under the audit's caps, encoded anew, without any metadata."""

import io
import threading
from dataclasses import dataclass

from PIL import Image

from labelclean.outputs.report_pictures import Load, thumbnail

_LOSSLESS_PIXELS = 1_000_000
_LONGEST_JPEG = 65_000
# A picture at the cap takes a few hundred megabytes while it is decoded.
_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Encoded:
    """A picture to be sent."""

    content: bytes
    media_type: str


class ReviewPictures:
    """The pictures of a run by row; both loaders raise DataError for one that cannot be read.

    Args:
        small: Row to pixels (H, W, 3) that are enough for a thumbnail.
        whole: Row to all pixels.
    """

    def __init__(self, small: Load, whole: Load) -> None:
        self._small, self._whole = small, whole
        self._turn = threading.BoundedSemaphore(_AT_ONCE)

    def small(self, row: int) -> Encoded:
        """Give a picture for a list."""
        with self._turn:
            return Encoded(*thumbnail(self._small(row)))

    def whole(self, row: int) -> Encoded:
        """Give a picture in its full resolution."""
        with self._turn:
            image = Image.fromarray(self._whole(row))
            buffer = io.BytesIO()
            few = image.width * image.height <= _LOSSLESS_PIXELS
            if few or max(image.size) > _LONGEST_JPEG:
                image.save(buffer, format="PNG")
                return Encoded(buffer.getvalue(), "image/png")
            image.save(buffer, format="JPEG", quality=92)
            return Encoded(buffer.getvalue(), "image/jpeg")
