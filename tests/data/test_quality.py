"""Faults of pictures as pictures, from what the scan saw while it decoded them."""

import io

import numpy as np
import pytest
from PIL import Image, ImageFilter
from sklearn.datasets import load_sample_images

from labelclean.data.images import DEFAULT_LIMITS
from labelclean.data.quality import quality_words
from labelclean.data.scan import scan_features, scan_images
from labelclean.data.sources import EmbeddedImages


def encoded(picture):
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def usual():
    photograph = load_sample_images().images[0]
    pieces = [photograph[y : y + 190, x : x + 190] for y in (150, 220) for x in range(0, 440, 40)]
    return [Image.fromarray(piece).resize((96, 96)) for piece in pieces]


def words(pictures):
    source = EmbeddedImages([encoded(picture) for picture in pictures], None, DEFAULT_LIMITS)
    return quality_words(scan_images(source, workers=1))


@pytest.mark.parametrize(
    ("fault", "change"),
    [
        ("dark", lambda picture: picture.point(lambda value: value // 8)),
        ("bright", lambda picture: picture.point(lambda value: 236 + value // 13)),
        ("low contrast", lambda picture: picture.point(lambda value: 110 + value // 10)),
        ("blurred", lambda picture: picture.filter(ImageFilter.GaussianBlur(12))),
        ("nearly uniform", lambda picture: Image.new("RGB", picture.size, (120, 130, 125))),
        ("odd shape", lambda picture: picture.resize((400, 40))),
    ],
)
def test_a_fault_is_named(fault, change):
    pictures = usual()
    assert words(pictures) == {}
    found = words([*pictures, change(pictures[4])])
    assert list(found) == [len(pictures)]
    assert fault in found[len(pictures)]


def test_what_most_pictures_have_is_no_fault():
    assert words([picture.point(lambda value: value // 8) for picture in usual()]) == {}


def test_features_have_no_faults():
    assert quality_words(scan_features(np.zeros((3, 2)))) == {}
