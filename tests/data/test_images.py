"""Every picture of the gallery comes out as it must, and nothing else comes out of damage."""

import io

import numpy as np
import pytest
from PIL import Image, ImageFile

from gallery import Case, encode, exif, jpeg, png, scene
from labelclean.data.images import (
    FORMATS,
    ImageError,
    ImageLimits,
    decode_image,
    inspect_image,
)


def outcome(call):
    try:
        return call()
    except ImageError as error:
        return error.reason


def fault(case: Case, found) -> str:
    if case.pixels is None:
        ok = isinstance(found, str) and case.words in found
        return "" if ok else f"{case.path!r}: expected {case.words!r}, got {found!r}"
    if isinstance(found, str):
        return f"{case.path!r}: {found}"
    if found.shape != case.pixels.shape or found.dtype != np.uint8:
        return f"{case.path!r}: {found.dtype} {found.shape}, expected {case.pixels.shape}"
    gap = int(np.abs(found.astype(int) - case.pixels).max())
    return "" if gap <= case.tolerance else f"{case.path!r}: differs by {gap}"


def test_every_picture_of_the_gallery_gives_what_it_must(gallery):
    cases, source = gallery
    assert len(cases) >= 100
    assert sum(case.pixels is None for case in cases) >= 25
    found = [outcome(lambda row=row: source.load(row)[0]) for row in range(len(source))]
    assert [text for text in map(fault, cases, found) if text] == []


def test_inspection_agrees_with_decoding(gallery):
    cases, source = gallery
    for row, case in enumerate(cases):
        decoded = outcome(lambda row=row: source.load(row)[0])
        seen = outcome(lambda row=row: source.inspect(row))
        if isinstance(decoded, str):
            assert seen == decoded, case.path
        else:
            assert (seen[1], seen[0]) == decoded.shape[:2], case.path


def test_pixels_are_writable_and_contiguous(gallery):
    cases, source = gallery
    for row, case in enumerate(cases):
        if case.pixels is not None:
            pixels = source.load(row)[0]
            assert pixels.flags.writeable, case.path
            assert pixels.flags.c_contiguous, case.path


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@pytest.mark.parametrize("format_", FORMATS)
def test_damage_gives_an_image_error_or_pixels_and_nothing_else(format_):
    rng = np.random.default_rng(7)
    image = Image.fromarray(rng.integers(0, 256, (40, 30, 3), np.uint8))
    whole = encode(image, format_, **({} if format_ in ("GIF", "BMP") else {"exif": exif(6)}))
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for place in rng.integers(0, min(len(data), 400), 4):
            data[place] = rng.integers(0, 256)
        encoded = bytes(data[: rng.integers(1, len(data) + 1)] if rng.random() < 0.3 else data)
        limits = ImageLimits(max_pixels=1_000_000)
        decoded = outcome(lambda e=encoded, c=limits: decode_image(e, limits=c))
        seen = outcome(lambda e=encoded, c=limits: inspect_image(e, limits=c))
        refused += isinstance(decoded, str)
        if isinstance(decoded, str):
            assert seen == decoded
        else:
            assert seen[:2] == (decoded.shape[1], decoded.shape[0])
    assert refused > 30


def test_a_large_jpeg_is_inspected_as_strictly_as_it_is_decoded():
    rng = np.random.default_rng(3)
    image = Image.fromarray(rng.integers(100, 140, (600, 700, 3), np.uint8))
    for progressive in (False, True):
        whole = jpeg(image, progressive=progressive)
        assert inspect_image(whole)[:2] == (700, 600)
        for cut in (0.1, 0.5, 0.9, 0.999):
            part = whole[: int(len(whole) * cut)]
            reasons = [outcome(lambda f=f, p=part: f(p)) for f in (decode_image, inspect_image)]
            assert all("truncated" in reason for reason in reasons)


def test_caps_hold_exactly():
    data = encode(Image.new("RGB", (20, 10)), "PNG")
    assert decode_image(data, limits=ImageLimits(len(data), 200)).shape == (10, 20, 3)
    with pytest.raises(ImageError, match=r"data\.max_bytes"):
        decode_image(data, limits=ImageLimits(len(data) - 1, 200))
    with pytest.raises(ImageError, match=r"20 x 10 pixels.*data\.max_pixels"):
        decode_image(data, limits=ImageLimits(len(data), 199))


def test_a_bomb_is_refused_before_its_pixels_are_made():
    import tracemalloc

    bomb = png(9000, 9000, 8, 2, b"\0" * 10)
    tracemalloc.start()
    with pytest.raises(ImageError, match="bomb"):
        decode_image(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_pillow_is_left_as_it_was():
    before = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES
    outcome(lambda: decode_image(png(50000, 50000, 8, 0, b"\0")))
    assert before == (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES)
    assert before[1] is False


@pytest.mark.filterwarnings("error::PIL.Image.DecompressionBombWarning")
def test_a_bomb_warning_that_is_an_error_is_still_an_image_error():
    with pytest.raises(ImageError, match="bomb"):
        decode_image(png(10000, 10000, 8, 0, b"\0"))


@pytest.mark.parametrize(
    ("min_side", "expected"), [(None, 1024), (300, 1024), (256, 512), (128, 256), (32, 128)]
)
def test_draft_keeps_twice_the_side_asked_for(min_side, expected):
    image = Image.fromarray(np.repeat(np.repeat(scene()[:16, :16], 64, 0), 64, 1))
    pixels = decode_image(jpeg(image), min_side=min_side)
    assert pixels.shape == (expected, expected, 3)
    small = np.asarray(Image.fromarray(pixels).resize((16, 16), Image.Resampling.BOX))
    assert np.abs(small.astype(int) - scene()[:16, :16]).max() <= 3


def test_a_drafted_picture_is_turned_upright_too():
    wide = Image.fromarray(np.zeros((800, 400, 3), np.uint8))
    turned = jpeg(wide, exif=exif(6))
    assert decode_image(turned, min_side=50).shape == (100, 200, 3)
    assert inspect_image(turned)[:2] == (800, 400)


def test_the_expected_upright_pixels_are_pillows_own():
    """The gallery's idea of EXIF is checked against an implementation that is not ours."""
    from PIL import ImageOps

    rng = np.random.default_rng(0)
    stored = Image.fromarray(rng.integers(0, 256, (5, 8, 3), np.uint8))
    for number in range(1, 9):
        data = encode(stored, "PNG", exif=exif(number))
        expected = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
        np.testing.assert_array_equal(decode_image(data), expected)


def test_no_picture_is_at_fault_where_the_machine_has_no_room(monkeypatch):
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "PNG")

    def full(*_):
        raise MemoryError

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", full)
    with pytest.raises(ImageError, match="asks for more memory than 8 x 8 pixels take"):
        decode_image(buffer.getvalue())
    monkeypatch.setattr("labelclean.data.images._ROOM", 1 << 60)
    with pytest.raises(MemoryError):
        decode_image(buffer.getvalue())
