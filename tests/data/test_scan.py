"""Every row is looked at once, whoever looks, and every bad one is named."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from labelclean.data import scan as scanning
from labelclean.data.scan import Scan, scan_features, scan_images
from labelclean.data.sources import ArrayImages, array_digest
from labelclean.errors import LabelCleanError
from made_images import Made


def same(one: Scan, other: Scan) -> bool:
    fields = ("readable", "reason", "digest", "width", "height")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in fields)


def test_the_gallery_is_told_apart(gallery):
    cases, source = gallery
    found = scan_images(source, workers=1)
    for row, case in enumerate(cases):
        assert found.readable[row] == (case.pixels is not None), case.path
        assert case.words in found.reason[row]
        if case.pixels is not None:
            assert (found.height[row], found.width[row]) == case.pixels.shape[:2], case.path
            assert found.digest[row].tobytes() == source.load(row)[1]
        else:
            assert found.reason[row]
            assert not found.digest[row].any()
            assert found.width[row] == found.height[row] == 0


def test_any_number_of_workers_finds_the_same(gallery):
    _, source = gallery
    alone = scan_images(source, workers=0)
    for workers in (None, 1, 2, 3):
        assert same(scan_images(source, workers=workers), alone)


@pytest.mark.parametrize("count", [0, 1, 2, 31, 33, 1000])
def test_every_row_is_seen_exactly_once(count):
    found = scan_images(Made(range(count), os.getpid()), workers=1)
    expected = np.arange(count)
    np.testing.assert_array_equal(found.readable, expected % 2 == 0)
    np.testing.assert_array_equal(found.width, np.where(expected % 2, 0, expected))
    assert found.reason.tolist() == [f"odd row {row}" if row % 2 else "" for row in range(count)]
    assert found.digest.shape == (count, 32)


def test_helpers_take_part_and_put_rows_where_they_belong():
    found = scan_images(Made(range(20_000), os.getpid()), workers=3)
    rows = np.arange(0, 20_000, 2)
    np.testing.assert_array_equal(found.width[rows], rows)
    assert found.height[rows].any(), "no helper looked at any row"
    assert (found.height[rows] == 0).any(), "this process looked at no row"


def test_more_workers_than_rows():
    assert scan_images(Made(range(3), os.getpid()), workers=3).readable.tolist() == [
        True,
        False,
        True,
    ]


def test_progress_counts_up_to_all_rows():
    for workers in (1, 2):
        told = []
        scan_images(
            Made(range(500), os.getpid()),
            workers=workers,
            progress=lambda done, total, told=told: told.append((done, total)),
        )
        assert told[-1] == (500, 500)
        assert told == sorted(told)
        assert {total for _, total in told} == {500}


def test_a_helper_that_dies_is_reported():
    began = time.monotonic()
    with pytest.raises(LabelCleanError, match=r"ended before its work was done.*--workers 1"):
        scan_images(Made(range(100), os.getpid(), elsewhere="die"), workers=2)
    assert time.monotonic() - began < 30


def test_a_mistake_of_ours_in_a_helper_is_not_hidden():
    with pytest.raises(KeyError, match="a mistake of ours"):
        scan_images(Made(range(100), os.getpid(), elsewhere="raise"), workers=2)


def test_little_work_starts_no_process(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr("joblib.externals.loky.ProcessPoolExecutor", refuse)
    monkeypatch.setattr(scanning, "usable_cores", lambda: 8)
    assert scan_images(Made(range(5000), os.getpid())).readable.sum() == 2500
    monkeypatch.setattr(scanning, "_WORTH_A_PROCESS", 0.0)
    with pytest.raises(AssertionError, match="a process was started"):
        scan_images(Made(range(5000), os.getpid()))


def test_a_script_without_main_guard_works(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\n"
        "from labelclean.data.scan import scan_images\n"
        "from labelclean.data.sources import ArrayImages\n"
        "source = ArrayImages(np.ones((300, 4, 4), np.uint8))\n"
        "print(scan_images(source, workers=2).readable.sum())\n"
    )
    found = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert found.stdout == "300\n"
    assert found.stderr == ""


def test_duplicates_are_grouped_in_order_and_without_unreadable_rows():
    readable = np.array([True, True, False, True, True, False, True])
    digest = np.zeros((7, 32), np.uint8)
    # Digests that differ only in their last, or only in their first byte, are different.
    digest[[0, 4]] = 9
    digest[1, 31] = 1
    digest[3, 0] = 1
    digest[6, 0] = 1
    none = np.zeros(7, np.int32)
    found = Scan(readable, np.full(7, "", object), digest, none, none)
    assert [group.tolist() for group in found.duplicates()] == [[0, 4], [3, 6]]


def test_large_groups_keep_their_rows_in_order():
    pixels = np.arange(900, dtype=np.uint8)[:, None, None] % 2
    found = scan_images(ArrayImages(np.ascontiguousarray(pixels)), workers=1)
    groups = [group.tolist() for group in found.duplicates()]
    assert groups == [list(range(0, 900, 2)), list(range(1, 900, 2))]


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_have_no_duplicates(rows):
    assert scan_images(Made(range(rows), os.getpid()), workers=1).duplicates() == []


def test_identical_pictures_are_duplicates():
    pixels = np.random.default_rng(0).integers(0, 256, (6, 4, 4, 3), np.uint8)
    pixels[5] = pixels[2]
    found = scan_images(ArrayImages(pixels), workers=1)
    assert [group.tolist() for group in found.duplicates()] == [[2, 5]]


def test_features_that_are_not_finite_are_unreadable():
    features = np.array([[1.0, 2.0], [np.nan, 0.0], [1.0, 2.0], [np.inf, 1.0]])
    found = scan_features(features)
    assert found.readable.tolist() == [True, False, True, False]
    assert found.reason[1] == "a feature is NaN or infinite"
    assert found.digest[0].tobytes() == array_digest(features[0])
    assert [group.tolist() for group in found.duplicates()] == [[0, 2]]
