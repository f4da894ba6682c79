"""Decode pictures of unknown origin into plain RGB, or say in one line why that is not possible."""

import io
import math
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from PIL import Image, TiffImagePlugin, UnidentifiedImageError

from labelclean.data.looks import Look, look_at
from labelclean.errors import DataError

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
# Transparent pictures are mostly cut-outs made to lie on a white page; dropping the alpha channel
# instead would show whatever colour the editor left behind the mask.
BACKGROUND = 255

# What Pillow's parsers raise on damaged input; it documents no narrower list.
_FAULTS = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    AssertionError,
    EOFError,
    RuntimeError,
    MemoryError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)
_ORIENTATION = 0x0112
_STORED = 1
_ON_THEIR_SIDE = (5, 6, 7, 8)
_EXIF_KEYS = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp")
_PHOTOMETRIC = 262
_WHITE_IS_ZERO = 0
# Bytes that must be free for a picture to be at fault where memory ran out while it was decoded.
_ROOM = 1 << 28
# A picture read only to see whether it can be read needs no more detail than this.
_INSPECTED_SIDE = 64


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """Caps a single picture must stay under.

    Args:
        max_bytes: Largest encoded picture accepted, in bytes.
        max_pixels: Largest picture accepted, in pixels; checked before any pixel is decoded.
            The default is below the number from which Pillow warns of a decompression bomb, so
            that every such warning is an error here; Pillow refuses about 179 million by itself.
    """

    max_bytes: int = 64 * 2**20
    max_pixels: int = 50_000_000


DEFAULT_LIMITS = ImageLimits()


class ImageError(DataError):
    """One picture cannot be used; `reason` says why in one line."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def decode_image(
    data: bytes, *, limits: ImageLimits = DEFAULT_LIMITS, min_side: int | None = None
) -> np.ndarray:
    """Decode a picture to RGB, upright.

    The first frame of an animation or page of a TIFF counts. Transparency is laid over white. Grey
    of 16 bits is divided by 257, so that 65535 is white. Integers of 32 bits and floats have no
    agreed white: it is the smallest of 1 (floats only), 255, 65535 and 2^32 - 1 that holds the
    largest value; a picture with negative values is stretched from its minimum to its maximum.
    Colour profiles are ignored, as the common training pipelines do.

    Args:
        data: The encoded picture: JPEG, PNG, WebP, BMP, GIF or TIFF, whatever its name says.
        limits: Caps on bytes and pixels.
        min_side: Shorter side that is enough for the caller. A JPEG at least four times as large
            is then decoded at a half, a quarter or an eighth of its size, which is faster, and
            stays at least twice as large as asked, so that a later resize hardly sees it.

    Returns:
        (H, W, 3) uint8.

    Raises:
        ImageError: The picture is damaged, too large or of another format.
        MemoryError: The machine has no room for any picture.
    """
    image = _open(data, limits)
    _load(image, min_side)
    return _upright(_converted(image), _orientation(image))


def inspect_image(data: bytes, *, limits: ImageLimits = DEFAULT_LIMITS) -> tuple[int, int, Look]:
    """Read a picture to its last byte without keeping it; the cheapest proof that it decodes.

    Args:
        data: The encoded picture.
        limits: Caps on bytes and pixels.

    Returns:
        Width and height of what `decode_image` would give, and what it looks like, upright.

    Raises:
        ImageError: As `decode_image` would.
    """
    image = _open(data, limits)
    width, height = image.size
    drafted = _load(image, _INSPECTED_SIDE)
    if not drafted:
        # TIFF turns itself upright while it is read.
        width, height = image.size
    plain = image
    if image.mode not in ("RGB", "L"):
        plain = Image.fromarray(_converted(image))
    orientation = _orientation(image)
    seen = look_at(plain)
    thumbnail = _upright(seen.thumbnail[..., None], orientation)[..., 0]
    if orientation in _ON_THEIR_SIDE:
        width, height = height, width
    return width, height, Look(thumbnail, seen.light)


def over_background(rgb: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Lay colours over the background: (H, W, 3) and (H, W) uint8 -> (H, W, 3) uint8, rounded."""
    # BACKGROUND - (BACKGROUND - rgb) * alpha / 255, in place: pictures may be large.
    cover = (BACKGROUND - rgb).astype(np.uint16)
    cover *= alpha[..., None]
    cover += 127
    cover //= 255
    return BACKGROUND - cover.astype(np.uint8)


def _open(data: bytes, limits: ImageLimits) -> Image.Image:
    if not data:
        raise ImageError("the file is empty (0 bytes)")
    if len(data) > limits.max_bytes:
        raise ImageError(f"more than {limits.max_bytes} bytes (the cap is data.max_bytes)")
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError as error:
        raise ImageError(
            "not recognised as JPEG, PNG, WebP, BMP, GIF or TIFF: "
            "another format, or damaged at its beginning"
        ) from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageError(f"decompression bomb: {_one_line(error)}") from error
    except _FAULTS as error:
        raise ImageError(f"damaged picture: {_one_line(error)}") from error
    width, height = image.size
    if width * height > limits.max_pixels:
        raise ImageError(
            f"decompression bomb or too large: {width} x {height} pixels, more than "
            f"{limits.max_pixels} (the cap is data.max_pixels)"
        )
    return image


def _load(image: Image.Image, min_side: int | None) -> bool:
    """Decode the pixels; say whether they are fewer than the file holds."""
    size = image.size
    try:
        if min_side is not None:
            image.draft(None, (2 * min_side, 2 * min_side))
        drafted = image.size != size
        image.load()
    except _FAULTS as error:
        raise _damaged(image, error) from error
    return drafted


def _converted(image: Image.Image) -> np.ndarray:
    try:
        return _to_rgb(image)
    except _FAULTS as error:
        raise _damaged(image, error) from error


def _damaged(image: Image.Image, error: BaseException) -> ImageError:
    if isinstance(error, MemoryError):
        # No picture is called unreadable because the machine is full: then the run must end.
        np.empty(_ROOM, np.uint8)
        return ImageError(f"asks for more memory than {image.width} x {image.height} pixels take")
    return ImageError(f"damaged {image.format}: {_one_line(error)}")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _orientation(image: Image.Image) -> int:
    """Give the EXIF orientation, 1 if there is none or it cannot be read.

    Damaged metadata does not make pixels wrong, and every viewer shows such a picture as stored.
    """
    if not any(key in image.info for key in _EXIF_KEYS):
        return _STORED
    try:
        orientation = image.getexif().get(_ORIENTATION)
    except _FAULTS:
        return _STORED
    if isinstance(orientation, int) and 1 <= orientation <= 8:
        return orientation
    return _STORED


def _to_rgb(image: Image.Image) -> np.ndarray:
    if image.mode.startswith("I") or image.mode == "F":
        grey = _deep_grey(image)
        return np.repeat(grey[..., None], 3, axis=2)
    if image.has_transparency_data:
        rgba = np.asarray(image.convert("RGBA"))
        return over_background(rgba[..., :3], rgba[..., 3])
    return np.array(image if image.mode == "RGB" else image.convert("RGB"))


def _deep_grey(image: Image.Image) -> np.ndarray:
    """Bring grey of more than 8 bits to (H, W) uint8."""
    values = np.asarray(image)
    if image.mode.startswith("I;16"):
        scaled = ((values.astype(np.uint32) + 128) // 257).astype(np.uint8)
    else:
        low, high = _range(values)
        scaled = np.rint((values - low) * (255.0 / (high - low))).astype(np.uint8)
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        # Pillow inverts this for 1 and 8 bits only.
        if image.tag_v2.get(_PHOTOMETRIC) == _WHITE_IS_ZERO:
            scaled = 255 - scaled
    elif "transparency" in image.info:
        scaled[values == image.info["transparency"]] = BACKGROUND
    return scaled


def _range(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError("it holds values that are not finite")
    if low < 0:
        return low, high if high > low else low + 1.0
    scales: tuple[float, ...] = (255.0, 65535.0, 2.0**32 - 1)
    if values.dtype.kind == "f":
        scales = (1.0, *scales)
    return 0.0, next((scale for scale in scales if high <= scale), high)


def _upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Undo the camera's rotation or mirroring as EXIF numbers them, 1 to 8."""
    if orientation in _ON_THEIR_SIDE:
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)
