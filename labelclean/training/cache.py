"""A cache of features on disk: found by what a picture contains, shared by runs at the same time.

A FeatureCache holds the features of one backbone, one set of weights and one transform. It is a
folder of shards: .npy files of (digest, feature) pairs that are written whole, renamed into place
and never changed. Two runs that work at once write one after the other, and different shards, at
worst the same values twice. Readers map shards into memory.
"""

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelclean.atomic import atomic_path, folder_lock, one_writer
from labelclean.errors import OutputError
from labelclean.options import no_log

_DIGEST = 32
_TILE = 4096
_FOLDER, _SHARD = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}\.npy")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class FeatureCache:
    """The features of one backbone and transform.

    Args:
        folder: Where the cache is.
        key: Text that names everything the features depend on beside the picture.
        width: Number of features D.
        limit: Bytes the whole cache is kept under, as far as older shards can make room.
    """

    def __init__(self, folder: Path, key: str, width: int, limit: float) -> None:
        self.root, self.limit, self.width = folder, limit, width
        self.folder = folder / hashlib.sha256(f"1 {width} {key}".encode()).hexdigest()[:32]
        self.kind = np.dtype([("digest", f"V{_DIGEST}"), ("feature", "<f4", (width,))])

    def find(self, digest: NDArray[np.uint8]) -> "CacheHits":
        """Look for (N, 32) digests among the shards that are there now."""
        shards, paths = [], []
        for path in sorted(self.folder.glob("*.npy")):
            shard = self._open(path)
            if shard is not None:
                shards.append(shard)
                paths.append(path)
        return CacheHits(shards, paths, _as_keys(digest), self.width)

    def add(self, digest: NDArray[np.uint8], features: NDArray[np.float32]) -> None:
        """Store (N, D) features under (N, 32) digests as one shard.

        Raises:
            OutputError: The disk is full or does not let us write; no part of the shard remains.
        """
        shard = np.empty(len(digest), self.kind)
        shard["digest"] = _as_keys(digest)
        shard["feature"] = features
        # Names sort by age only roughly, and need not: equal digests have equal features.
        target = self.folder / f"{secrets.token_hex(8)}.npy"
        try:
            with _one_change(self.root):
                self._make_room(shard.nbytes)
                with atomic_path(target) as temporary, temporary.open("wb") as file:
                    np.save(file, shard)
        except OSError as error:
            # The folder's name is long and of no use to a person; the cache's is.
            why = "the disk is full" if error.errno in _FULL else (error.strerror or str(error))
            raise OutputError(
                f"features cannot be cached in {self.root}: {why}. What was stored before is "
                "whole and will be used. Free some space, choose another place with --cache-dir, "
                "or run with --no-cache."
            ) from error

    def _open(self, path: Path) -> NDArray[np.void] | None:
        try:
            shard = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            # Another run made room, or something else damaged the file: either way it is a miss.
            return None
        return shard if shard.dtype == self.kind and shard.ndim == 1 else None

    def _make_room(self, wanted: int) -> None:
        sizes = {path: _stat(path) for path in self.root.glob("*/*.npy")}
        total = sum(size for size, _ in sizes.values()) + wanted
        for path, (size, _) in sorted(sizes.items(), key=lambda item: item[1][1]):
            if total <= self.limit:
                return
            if path.parent == self.folder:
                continue
            try:
                path.unlink()
            except OSError:
                continue
            total -= size


@dataclass(frozen=True, slots=True)
class CacheContent:
    """What a feature cache holds.

    Args:
        backbones: Kinds of features: backbone, weights, transform and versions.
        features: Rows that are stored.
        size: Bytes on disk.
    """

    backbones: int
    features: int
    size: int


def cache_content(root: Path) -> CacheContent:
    """Count what a cache holds; files that are no shards do not count."""
    shards = list(_shards(root))
    rows = sum(_rows(path) for path in shards)
    size = sum(_stat(path)[0] for path in shards)
    return CacheContent(len({path.parent for path in shards}), rows, size)


def clear_cache(root: Path) -> CacheContent:
    """Remove every shard of a cache, and nothing else; give what was removed."""
    with _one_change(root):
        content = cache_content(root)
        shards = list(_shards(root))
        for path in shards:
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in shards}:
            if not any(folder.iterdir()):
                folder.rmdir()
    return content


def _one_change(root: Path) -> AbstractContextManager[None]:
    """Change a cache alone; others change it for moments only, so nobody is refused."""
    return one_writer(folder_lock(root), "cache", wait=no_log)


def _shards(root: Path) -> Iterator[Path]:
    for path in sorted(root.glob("*/*.npy")):
        if _FOLDER.fullmatch(path.parent.name) and _SHARD.fullmatch(path.name):
            yield path


def _rows(path: Path) -> int:
    try:
        return len(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError, TypeError):
        return 0


class CacheHits:
    """Where the features of some digests are; sample i is the i-th digest.

    Args:
        shards: Memory-mapped shards.
        paths: Their files.
        keys: (N,) digests looked for.
        width: Number of features D.
    """

    def __init__(
        self,
        shards: list[NDArray[np.void]],
        paths: list[Path],
        keys: NDArray[np.bytes_],
        width: int,
    ) -> None:
        self.shards, self.paths, self.width = shards, paths, width
        self.shard = np.full(len(keys), -1, np.int64)
        self.place = np.zeros(len(keys), np.int64)
        for number, shard in enumerate(shards):
            known = np.ascontiguousarray(shard["digest"]).view(f"S{_DIGEST}")
            order = np.argsort(known, kind="stable")
            at = np.minimum(np.searchsorted(known[order], keys), len(known) - 1)
            hit = (known[order[at]] == keys) & (self.shard < 0)
            self.shard[hit], self.place[hit] = number, order[at[hit]]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples N and features D."""
        return len(self.shard), self.width

    @property
    def missing(self) -> NDArray[np.int64]:
        """Samples without features."""
        return np.flatnonzero(self.shard < 0)

    def tiles(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Give the features of all samples in fixed tiles of consecutive samples."""
        for start in range(0, len(self.shard), _TILE):
            tile = slice(start, min(start + _TILE, len(self.shard)))
            yield tile, self.read(np.arange(tile.start, tile.stop))

    def read(self, samples: NDArray[np.int64]) -> NDArray[np.float32]:
        """Give (B, D) features of some samples, none of them missing."""
        features = np.empty((len(samples), self.width), np.float32)
        owner = self.shard[samples]
        for number in np.unique(owner):
            mine = np.flatnonzero(owner == number)
            features[mine] = self.shards[number]["feature"][self.place[samples[mine]]]
        return features

    def touch(self) -> None:
        """Mark the shards as used now, so that room is made elsewhere first."""
        for number in np.unique(self.shard[self.shard >= 0]):
            try:
                os.utime(self.paths[number])
            except OSError:
                continue


def _as_keys(digest: NDArray[np.uint8]) -> NDArray[np.bytes_]:
    # "S" ignores trailing zero bytes, which cannot make digests of one length equal that are not.
    return np.ascontiguousarray(digest).view(f"S{_DIGEST}").ravel()


def _stat(path: Path) -> tuple[int, float]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0.0
    return found.st_size, found.st_mtime
