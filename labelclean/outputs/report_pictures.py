"""Thumbnails: decoded, made small and encoded anew; nothing of a file but its pixels is left."""

import base64
import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from labelclean.errors import DataError

SIDE = 112
TINY = 32  # pictures up to this side keep every pixel; the page shows them enlarged
READERS = 4

Load = Callable[[int], NDArray[np.uint8]]
"""Row to pixels (H, W, 3); raises DataError where the picture cannot be read."""


def thumbnail(pixels: NDArray[np.uint8]) -> tuple[bytes, str]:
    """Encode pixels (H, W, 3) as a small picture; gives the bytes and the media type."""
    image = Image.fromarray(pixels)
    buffer = io.BytesIO()
    if max(image.size) <= TINY:
        image.save(buffer, format="PNG", optimize=True)
        return buffer.getvalue(), "image/png"
    image.thumbnail((SIDE, SIDE))
    image.save(buffer, format="JPEG", quality=80, optimize=True)
    return buffer.getvalue(), "image/jpeg"


def inline_thumbnails(load: Load, rows: Sequence[int], budget: int) -> dict[str, str]:
    """Give thumbnails as data URIs by row, until they take more than `budget` characters.

    A row whose picture cannot be read now is left out: it was readable when it was audited, and is
    still listed without one.
    """

    def make(row: int) -> str | None:
        try:
            content, kind = thumbnail(load(row))
        except DataError:
            return None
        return f"data:{kind};base64,{base64.b64encode(content).decode()}"

    found: dict[str, str] = {}
    spent, step = 0, 16 * READERS
    with ThreadPoolExecutor(READERS) as pool:
        for begin in range(0, len(rows), step):
            part = rows[begin : begin + step]
            for row, picture in zip(part, pool.map(make, part), strict=True):
                if picture is None:
                    continue
                spent += len(picture)
                if spent > budget:
                    return found
                found[str(row)] = picture
    return found
