"""Bad and odd pictures, made on the spot, each with what must come out of it."""

import io
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

Flip = Image.Transpose
# How a camera stores an upright scene, by the EXIF number it writes beside it.
STORED_AS = {
    2: Flip.FLIP_LEFT_RIGHT,
    3: Flip.ROTATE_180,
    4: Flip.FLIP_TOP_BOTTOM,
    5: Flip.TRANSPOSE,
    6: Flip.ROTATE_90,
    7: Flip.TRANSVERSE,
    8: Flip.ROTATE_270,
}
LOSSY = 14


@dataclass(frozen=True)
class Case:
    """A path and what must come out: pixels within a tolerance, or a reason with these words."""

    path: str
    pixels: np.ndarray | None = None
    tolerance: int = 0
    words: str = ""


def scene() -> np.ndarray:
    """(16, 24, 3): four flat corners of different colour, so that every turn shows."""
    pixels = np.zeros((16, 24, 3), np.uint8)
    pixels[:8, :16] = (200, 40, 40)
    pixels[:8, 16:] = (30, 160, 60)
    pixels[8:, :16] = (20, 60, 210)
    pixels[8:, 16:] = (240, 230, 120)
    return pixels


def encode(image: Image.Image, format_: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format_, **options)
    return buffer.getvalue()


def jpeg(image: Image.Image, **options: object) -> bytes:
    return encode(image, "JPEG", quality=95, subsampling=0, **options)


def exif(orientation: int) -> bytes:
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def png(width: int, height: int, depth: int, kind: int, rows: bytes, **more: object) -> bytes:
    """Write a PNG by hand, for what Pillow does not write; `rows` hold their filter bytes."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(bool(more.get("adam7"))))
    extra = chunk(b"tRNS", more["trns"]) if "trns" in more else b""  # type: ignore[arg-type]
    body = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + body + chunk(b"IEND", b"")


def interlaced(pixels: np.ndarray) -> bytes:
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))
    rows = b""
    for left, top, across, down in (*passes, (0, 1, 1, 2)):
        for line in pixels[top::down, left::across]:
            rows += b"\0" + line.tobytes()
    return png(pixels.shape[1], pixels.shape[0], 8, 2, rows, adam7=True)


def grey(*values: int) -> np.ndarray:
    return np.repeat(np.array([values], np.uint8)[..., None], 3, axis=2)


def plain_formats(folder: Path) -> Iterator[Case]:
    """Whole pictures in every accepted format, compression and dressing."""
    truth = scene()
    image = Image.fromarray(truth)
    exact = {
        "plain.png": encode(image, "PNG"),
        "lossless.webp": encode(image, "WEBP", lossless=True),
        "plain.bmp": encode(image, "BMP"),
        "plain.gif": encode(image.quantize(4), "GIF"),
        "raw.tiff": encode(image, "TIFF"),
        "lzw.tiff": encode(image, "TIFF", compression="tiff_lzw"),
        "interlaced.png": interlaced(truth),
        "png-called.jpg": encode(image, "PNG"),
        "no-extension": encode(image, "PNG"),
    }
    lossy = {
        "plain.jpg": jpeg(image),
        "progressive.jpg": jpeg(image, progressive=True),
        "trailing-garbage.jpg": jpeg(image) + b"\xff\xd8garbage" * 50,
        "corrupt-exif.jpg": jpeg(image, exif=b"Exif\0\0II*\0\xff\xff\xff\x7f\x01\x02"),
        "absurd-orientation.jpg": jpeg(image, exif=exif(99)),
        "jpeg-called.png": jpeg(image),
        "stereo-mpo.jpg": encode(
            image, "MPO", save_all=True, quality=95, subsampling=0, append_images=[image]
        ),
    }
    for name, data in {**exact, **lossy}.items():
        (folder / name).write_bytes(data)
        yield Case(name, truth, tolerance=LOSSY if name in lossy else 0)


def orientations(folder: Path) -> Iterator[Case]:
    """All eight EXIF orientations in the four formats that carry them."""
    truth = scene()
    for number in range(1, 9):
        stored = Image.fromarray(truth)
        if number in STORED_AS:
            stored = stored.transpose(STORED_AS[number])
        tagged = {
            f"turned-{number}.jpg": jpeg(stored, exif=exif(number)),
            f"turned-{number}.png": encode(stored, "PNG", exif=exif(number)),
            f"turned-{number}.webp": encode(stored, "WEBP", lossless=True, exif=exif(number)),
            f"turned-{number}.tiff": encode(stored, "TIFF", tiffinfo={274: number}),
            f"turned-{number}-lzw.tiff": encode(
                stored, "TIFF", tiffinfo={274: number}, compression="tiff_lzw"
            ),
        }
        for name, data in tagged.items():
            (folder / name).write_bytes(data)
            yield Case(name, truth, tolerance=LOSSY if name.endswith("jpg") else 0)


def odd_modes(folder: Path) -> Iterator[Case]:
    """Pixels that are not 8-bit RGB."""
    truth = scene()
    inks = Image.merge("CMYK", [*Image.fromarray(255 - truth).split(), Image.new("L", (24, 16))])
    alpha = np.array([[0, 51, 255]], np.uint8)
    shade = np.array([[100, 100, 100]], np.uint8)
    laid = grey(255, 224, 100)  # 255 - (255 - 100) * alpha / 255
    rgba = Image.fromarray(np.dstack([shade, shade, shade, alpha]))
    deep = np.array([[0, 257, 32896, 65535]], np.uint16)
    signed = np.array([[-10, 0, 10]], np.int32)
    wide = np.array([[0, 257, 65535]], np.int32)
    unit = np.array([[0.0, 0.5, 1.0]], np.float32)
    palette = Image.fromarray(np.array([[0, 1, 2]], np.uint8), "P")
    palette.putpalette([10, 20, 30, 100, 100, 100, 7, 8, 9])
    seen_through = np.array([[[255, 255, 255], [224, 224, 224], [7, 8, 9]]], np.uint8)
    keyed = np.array([[[255, 255, 255], [9, 9, 9]]], np.uint8)
    inverted = encode(Image.fromarray(deep), "TIFF").replace(
        struct.pack("<HHII", 262, 3, 1, 1), struct.pack("<HHII", 262, 3, 1, 0)
    )
    deep_rows = b"\0" + deep.astype(">u2").tobytes()
    cases = {
        "cmyk.tiff": (encode(inks, "TIFF"), truth, 0),
        "cmyk-adobe.jpg": (jpeg(inks), truth, LOSSY),
        "rgba.png": (encode(rgba, "PNG"), laid, 1),
        "rgba.webp": (encode(rgba, "WEBP", lossless=True, exact=True), laid, 1),
        "grey-alpha.png": (encode(rgba.convert("LA"), "PNG"), laid, 1),
        "palette-alpha.png": (
            encode(palette, "PNG", transparency=bytes([0, 51, 255])),
            seen_through,
            1,
        ),
        "palette-key.gif": (
            encode(palette, "GIF", transparency=0),
            np.array([[[255, 255, 255], [100, 100, 100], [7, 8, 9]]], np.uint8),
            0,
        ),
        "colour-key.png": (
            png(2, 1, 8, 2, bytes([0, 5, 6, 7, 9, 9, 9]), trns=b"\0\5\0\6\0\7"),
            keyed,
            0,
        ),
        "grey.png": (encode(Image.fromarray(alpha), "PNG"), grey(0, 51, 255), 0),
        "grey.jpg": (jpeg(Image.new("L", (9, 5), 77)), np.full((5, 9, 3), 77, np.uint8), 1),
        "one-bit.png": (encode(Image.fromarray(alpha > 60), "PNG"), grey(0, 0, 255), 0),
        "grey-16.png": (png(4, 1, 16, 0, deep_rows), grey(0, 1, 128, 255), 0),
        "grey-16-key.png": (
            png(4, 1, 16, 0, deep_rows, trns=struct.pack(">H", 257)),
            grey(0, 255, 128, 255),
            0,
        ),
        "grey-16.tiff": (encode(Image.fromarray(deep), "TIFF"), grey(0, 1, 128, 255), 0),
        "grey-16-white-is-zero.tiff": (inverted, grey(255, 254, 127, 0), 0),
        "int-32.tiff": (encode(Image.fromarray(wide), "TIFF"), grey(0, 1, 255), 0),
        "int-32-negative.tiff": (encode(Image.fromarray(signed), "TIFF"), grey(0, 128, 255), 0),
        "float.tiff": (encode(Image.fromarray(unit), "TIFF"), grey(0, 128, 255), 0),
        "float-255.tiff": (encode(Image.fromarray(unit * 200), "TIFF"), grey(0, 100, 200), 0),
        "one-pixel.png": (encode(Image.new("RGB", (1, 1), (1, 2, 3)), "PNG"), [[[1, 2, 3]]], 0),
        "wide.png": (encode(Image.new("L", (5000, 1), 9), "PNG"), grey(*[9] * 5000), 0),
    }
    for name, (data, pixels, tolerance) in cases.items():
        (folder / name).write_bytes(data)
        yield Case(name, np.asarray(pixels, np.uint8), tolerance)


def several_frames(folder: Path) -> Iterator[Case]:
    """Animations and pages: the first one counts."""
    truth = scene()
    frames = {"save_all": True, "append_images": [Image.new("RGB", (24, 16), (0, 0, 0))]}
    first = Image.fromarray(truth)
    cases = {
        "animated.gif": encode(first, "GIF", **frames),
        "animated.webp": encode(first, "WEBP", lossless=True, **frames),
        "animated.png": encode(first, "PNG", **frames),
        "pages.tiff": encode(first, "TIFF", **frames),
    }
    for name, data in cases.items():
        (folder / name).write_bytes(data)
        yield Case(name, truth)


def damaged(folder: Path) -> Iterator[Case]:
    """What cannot be decoded, or must not."""
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))
    for format_ in ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP"):
        data = encode(image, format_)
        name = f"truncated.{format_.lower()}"
        (folder / name).write_bytes(data[: len(data) * 2 // 3])
        yield Case(name, words="damaged")
    nan = Image.fromarray(np.array([[np.nan, 1.0]], np.float32))
    cases = {
        "zero-byte.jpg": (b"", "empty"),
        "only-magic.jpg": (b"\xff\xd8\xff", "not recognised"),
        "text-called.png": (b"this is not a picture\n" * 20, "not recognised"),
        "page-called.jpg": (b"<!DOCTYPE html><html>404</html>", "not recognised"),
        "drawing.svg": (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "not recognised"),
        "bad-header.png": (encode(image, "PNG")[:12] + b"\0" * 40, "not recognised"),
        "icon.ico": (encode(image, "ICO"), "not recognised"),
        "portable.ppm": (encode(image, "PPM"), "not recognised"),
        "bomb-60-megapixels.png": (png(10000, 6000, 8, 0, b"\0"), "10000 x 6000"),
        "bomb-2500-megapixels.png": (png(50000, 50000, 8, 0, b"\0"), "bomb"),
        "bomb.gif": (b"GIF89a\xff\xff\xff\xff\0\0\0,\0\0\0\0\xff\xff\xff\xff\0\2\0;", "bomb"),
        "bomb.bmp": (_claim(encode(image, "BMP"), 18, 40000, 40000), "bomb"),
        "not-a-number.tiff": (encode(nan, "TIFF"), "not finite"),
    }
    for name, (data, words) in cases.items():
        (folder / name).write_bytes(data)
        yield Case(name, words=words)


def _claim(data: bytes, offset: int, width: int, height: int) -> bytes:
    return data[:offset] + struct.pack("<ii", width, height) + data[offset + 8 :]


def odd_files(folder: Path) -> Iterator[Case]:
    """Entries of a file system that are no plain files below the root."""
    truth, outside = scene(), folder.parent / "outside"
    outside.mkdir()
    Image.fromarray(truth).save(outside / "secret.png")
    (folder / "folder.jpg").mkdir()
    yield Case("folder.jpg", words="a folder")
    yield Case("missing.jpg", words="no such file")
    yield Case("plain.png/inside.png", words="no such file")
    yield Case("n" * 5000 + ".png", words="too long")
    yield Case("nul\0byte.png", words="no path can hold")
    yield Case("", words="no path")
    yield Case("../outside/secret.png", words="leaves the image root")
    yield Case(str(outside / "secret.png"), words="leaves the image root")
    yield Case(str(folder / "plain.png"), truth)
    yield Case("folder.jpg/../plain.png", truth)
    if os.name == "posix":
        yield from _posix_files(folder, outside)


def _posix_files(folder: Path, outside: Path) -> Iterator[Case]:
    (folder / "link-inside.png").symlink_to("plain.png")
    (folder / "link-out.png").symlink_to(outside / "secret.png")
    (folder / "linked-folder").symlink_to(outside)
    (folder / "link-to-device.png").symlink_to("/dev/zero")
    (folder / "link-to-nothing.png").symlink_to("nowhere.png")
    (folder / "loop.png").symlink_to("loop.png")
    os.mkfifo(folder / "pipe.png")
    (folder / "link-to-pipe.png").symlink_to("pipe.png")
    yield Case("link-inside.png", scene())
    yield Case("link-out.png", words="link leaves the image root")
    yield Case("linked-folder/secret.png", words="leaves the image root")
    yield Case("link-to-device.png", words="link leaves the image root")
    yield Case("link-to-nothing.png", words="no such file")
    yield Case("loop.png", words="loop")
    yield Case("pipe.png", words="named pipe")
    yield Case("link-to-pipe.png", words="named pipe")


def build(root: Path) -> list[Case]:
    """Write all pictures into `root`/images and list what must come out of each."""
    folder = root / "images"
    folder.mkdir()
    rooms = (plain_formats, orientations, odd_modes, several_frames, damaged, odd_files)
    return [case for room in rooms for case in room(folder)]
