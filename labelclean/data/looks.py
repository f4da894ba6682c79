"""What a decoded picture tells at a glance: a thumbnail, and how light and sharp it is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

THUMBNAIL_SIDE = 16
"""Side of the grey thumbnail that near duplicates are looked for with."""
LIGHT = ("low", "high", "spread", "sharpness")
"""What is measured of a picture's grey values, in this order."""
_MEASURED_SIDE = 128
_TAIL = 0.05


@dataclass(frozen=True, slots=True)
class Look:
    """What one picture looks like.

    Args:
        thumbnail: (16, 16) uint8, grey.
        light: (4,) as LIGHT: the 5 % and 95 % quantile of grey and its standard deviation, all
            0 to 255, and the share of that which changes from pixel to pixel.
    """

    thumbnail: NDArray[np.uint8]
    light: NDArray[np.float32]


def look_at(image: Image.Image) -> Look:
    """Look at a decoded picture of mode RGB or L; large ones are averaged down first."""
    factor = min(image.size) // _MEASURED_SIDE
    if factor > 1:
        image = image.reduce(factor)
    grey = image if image.mode == "L" else image.convert("L")
    return Look(small_grey(grey, THUMBNAIL_SIDE), _light(grey))


def small_grey(grey: Image.Image, side: int) -> NDArray[np.uint8]:
    """Scale a grey picture to (side, side) uint8, whatever its shape."""
    large = min(grey.size) >= side
    scaled = grey.resize((side, side), Image.Resampling.BOX if large else Image.Resampling.BILINEAR)
    return np.asarray(scaled, dtype=np.uint8)


def _light(grey: Image.Image) -> NDArray[np.float32]:
    counts = np.array(grey.histogram(), dtype=np.float64)
    share = np.cumsum(counts) / counts.sum()
    low, high = np.searchsorted(share, [_TAIL, 1 - _TAIL])
    levels = np.arange(256.0)
    mean = float(counts @ levels / counts.sum())
    spread = float(np.sqrt(counts @ (levels - mean) ** 2 / counts.sum()))
    pixels = np.asarray(grey, dtype=np.float32)
    steps = [np.abs(np.diff(pixels, axis=axis)).mean() for axis in (0, 1) if pixels.shape[axis] > 1]
    sharpness = float(np.mean(steps)) / max(spread, 1.0) if steps else 0.0
    return np.array([low, high, spread, sharpness], dtype=np.float32)
