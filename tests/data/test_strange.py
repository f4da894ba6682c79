"""Pictures that show none of the classes: the same ones every time, of the kinds they say."""

import io

import numpy as np
import pytest
from PIL import Image

from labelclean.data.images import DEFAULT_LIMITS
from labelclean.data.sources import ArrayImages, EmbeddedImages
from labelclean.data.strange import (
    CORRUPTED,
    FOREIGN,
    MIXED,
    StrangePictures,
    kind_of,
    make_strange,
)


def pictures(count=6, side=24):
    rng = np.random.default_rng(3)
    return rng.integers(0, 256, (count, side, side, 3)).astype(np.uint8)


def strange(pixels, seed=0):
    source = ArrayImages(pixels)
    rows = np.array([[0, 1], [2, 3], [4, 5], [1, 2], [3, 4], [5, 0]])
    digest = np.stack([np.frombuffer(source.load(at)[1], np.uint8) for at in range(len(pixels))])
    return StrangePictures(source, rows, digest[rows], seed)


def test_the_content_is_known_before_a_picture_is_made():
    made = strange(pixels := pictures())
    for at, digest in enumerate(made.content()):
        made_pixels, content = made.load(at)
        assert content == digest.tobytes()
        assert made_pixels.shape == pixels[0].shape
        assert made_pixels.dtype == np.uint8
        assert made_pixels.flags.writeable
        np.testing.assert_array_equal(made_pixels, made.load(at)[0])
        width, height, same, look = made.inspect(at)
        assert (width, height, same) == (24, 24, content)
        assert look.thumbnail.shape == (16, 16)
    assert len({line.tobytes() for line in made.content()}) == len(made)
    assert (made.content() != strange(pixels, seed=1).content()).any(axis=1).all()


def test_other_pictures_make_other_content():
    pixels = pictures()
    before = strange(pixels).content()
    pixels[0, 0, 0, 0] ^= 1
    changed = (before != strange(pixels).content()).any(axis=1)
    assert changed.tolist() == [True, False, False, False, False, True]


def test_kinds_take_turns():
    assert [kind_of(at) for at in range(4)] == [MIXED, CORRUPTED, FOREIGN, MIXED]


def test_halves_are_of_both_pictures():
    one, other = np.full((8, 8, 3), 10, np.uint8), np.full((4, 6, 3), 200, np.uint8)
    for seed in range(8):
        made = make_strange(one, other, MIXED, np.random.default_rng(seed))
        values, counts = np.unique(made, return_counts=True)
        assert values.tolist() == [10, 200]
        assert counts[0] == counts[1]


@pytest.mark.parametrize("kind", [CORRUPTED, FOREIGN])
@pytest.mark.parametrize("size", [(1, 1), (3, 50), (32, 32), (90, 40)])
def test_pictures_of_any_shape_can_be_made_strange(kind, size):
    one = np.random.default_rng(0).integers(0, 256, (*size, 3)).astype(np.uint8)
    for seed in range(12):
        made = make_strange(one, one, kind, np.random.default_rng(seed))
        assert made.shape == one.shape
        assert made.dtype == np.uint8


def test_a_decoder_may_give_less_than_all_pixels():
    encoded = []
    for pixels in pictures(6, 200):
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, format="JPEG")
        encoded.append(buffer.getvalue())
    source = EmbeddedImages(encoded, None, DEFAULT_LIMITS)
    digest = np.stack([np.frombuffer(source.load(at)[1], np.uint8) for at in range(6)])
    rows = np.array([[0, 1], [2, 3], [4, 5]])
    made = StrangePictures(source, rows, digest[rows], 0)
    assert made.load(0, 48)[0].shape[0] >= 48
    assert made.load(1, 48)[1] == made.content()[1].tobytes()
