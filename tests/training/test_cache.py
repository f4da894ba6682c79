"""The feature cache: found by content, whole or absent, shared, bounded."""

import errno
import os

import numpy as np
import pytest

from labelclean.errors import OutputError
from labelclean.training.cache import FeatureCache

WIDTH = 5


def digests(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 32), dtype=np.uint8)


def store(folder, key="key", limit=1e9) -> FeatureCache:
    return FeatureCache(folder, key, WIDTH, limit)


def test_features_are_found_by_content_in_any_order(tmp_path):
    known, features = digests(10), np.random.default_rng(1).random((10, WIDTH), np.float32)
    store(tmp_path).add(known[:6], features[:6])
    store(tmp_path).add(known[6:], features[6:])
    order = np.array([9, 0, 3, 3])
    found = store(tmp_path).find(known[order])
    assert len(found.missing) == 0
    assert np.array_equal(found.read(np.arange(4)), features[order])
    assert isinstance(found.shards[0], np.memmap)


def test_what_is_not_there_is_missing(tmp_path):
    known = digests(3)
    store(tmp_path).add(known[:2], np.zeros((2, WIDTH), np.float32))
    assert store(tmp_path).find(known).missing.tolist() == [2]
    assert store(tmp_path, key="another transform").find(known).missing.tolist() == [0, 1, 2]
    assert store(tmp_path / "nowhere").find(known).missing.tolist() == [0, 1, 2]


def test_digests_that_end_in_zeros_are_told_apart(tmp_path):
    known = np.zeros((2, 32), np.uint8)
    known[0, 0] = known[1, 0] = 7
    known[1, 31] = 1
    store(tmp_path).add(known[:1], np.ones((1, WIDTH), np.float32))
    assert store(tmp_path).find(known).missing.tolist() == [1]


def test_tiles_cover_everything_once(tmp_path, monkeypatch):
    monkeypatch.setattr("labelclean.training.cache._TILE", 4)
    known, features = digests(10), np.random.default_rng(1).random((10, WIDTH), np.float32)
    store(tmp_path).add(known, features)
    tiles = list(store(tmp_path).find(known).tiles())
    assert np.array_equal(np.concatenate([rows for _, rows in tiles]), features)
    assert [tile.start for tile, _ in tiles] == [0, 4, 8]


@pytest.mark.parametrize("damage", [b"", b"not numpy", None])
def test_a_damaged_shard_is_a_miss(tmp_path, damage):
    known = digests(2)
    store(tmp_path).add(known, np.zeros((2, WIDTH), np.float32))
    (shard,) = tmp_path.glob("*/*.npy")
    shard.write_bytes(shard.read_bytes()[:-8] if damage is None else damage)
    assert store(tmp_path).find(known).missing.tolist() == [0, 1]
    store(tmp_path).add(known, np.ones((2, WIDTH), np.float32))
    assert store(tmp_path).find(known).missing.tolist() == []


def test_a_full_disk_is_said_and_leaves_no_broken_cache(tmp_path, monkeypatch):
    known = digests(4)
    store(tmp_path).add(known[:2], np.zeros((2, WIDTH), np.float32))

    def half(file, array):
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np, "save", half)
    with pytest.raises(OutputError, match=r"disk is full.*--cache-dir.*--no-cache"):
        store(tmp_path).add(known[2:], np.zeros((2, WIDTH), np.float32))
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
    assert store(tmp_path).find(known).missing.tolist() == [2, 3]


def test_room_is_made_from_the_shelves_used_longest_ago(tmp_path):
    known, size = digests(8), 8 * (32 + 4 * WIDTH)
    for age, key in enumerate(("old", "recent")):
        store(tmp_path, key).add(known, np.zeros((8, WIDTH), np.float32))
        (path,) = store(tmp_path, key).folder.glob("*.npy")
        os.utime(path, (1000 + age, 1000 + age))
    store(tmp_path, "old").find(known).touch()
    store(tmp_path, "new", limit=3 * size).add(known, np.zeros((8, WIDTH), np.float32))
    assert len(store(tmp_path, "recent").find(known).missing) == 8
    assert len(store(tmp_path, "old").find(known).missing) == 0
    assert len(store(tmp_path, "new").find(known).missing) == 0
