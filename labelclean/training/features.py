"""Features of frozen backbones: computed once for every picture, kept, scaled for a head."""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import PIL
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelclean.data.sources import ImageSource
from labelclean.errors import OutputError
from labelclean.models.backbones import Backbone
from labelclean.models.embedder import Embedder
from labelclean.models.engines import Embeds, in_engine
from labelclean.models.head import FeatureScaling, signed_root
from labelclean.models.settings import ModelSettings
from labelclean.options import OnProgress, silent
from labelclean.training.batches import Rows, share
from labelclean.training.cache import CacheHits, FeatureCache
from labelclean.training.pictures import Pictures, as_they_are
from labelclean.training.runtime import Runtime, one_thread_each

TILE = 64
_SHARD = 2048
_GIVEN_TILE = 1 << 16
_ATTEMPTS = 3
_IN_MEMORY = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Extractor:
    """What computes features, and what they depend on.

    Args:
        embedder: The frozen network, on the runtime's device.
        backbone: What it was made of.
        runtime: Where it computes.
        threads: Threads that decode and, on a CPU, compute.
    """

    embedder: Embeds
    backbone: Backbone
    runtime: Runtime
    threads: int

    @property
    def key(self) -> str:
        """Everything but the picture that a feature depends on."""
        spec, layers = self.backbone.spec, ",".join(self.embedder.layers)
        # Not the number of threads or of pictures, which never change a bit; another torch or
        # Pillow may.
        versions = f"torch {torch.__version__} pillow {PIL.__version__}"
        kind = f"{self.runtime.device.type} {self.runtime.precision} {versions}"
        return f"{self.backbone.weights} {layers} {spec} square {kind}"

    def stream(
        self, pictures: Pictures, samples: Rows
    ) -> Iterator[tuple[Rows, NDArray[np.float32]]]:
        """Give (samples, features) for tiles of samples.

        Every tile has the same size, the last one padded by repeating its first sample, so that
        the arithmetic never depends on how many pictures there are.
        """
        cuts = [samples[start : start + TILE] for start in range(0, len(samples), TILE)]
        padded = (np.concatenate([cut, np.repeat(cut[:1], TILE - len(cut))]) for cut in cuts)
        on_cpu = self.runtime.device.type == "cpu"
        # On a CPU every thread takes its own tile all the way: threads that share one tile wait for
        # each other after every layer, which costs more the busier the machine is.
        then = self._embed if on_cpu else as_they_are
        with one_thread_each() if on_cpu else nullcontext():
            for cut, batch in zip(cuts, pictures.batches(padded, then=then), strict=True):
                features = batch if on_cpu else self._embed(batch)
                yield cut, features[: len(cut)].cpu().numpy()

    def _embed(self, batch: Tensor) -> Tensor:
        with torch.inference_mode(), self.runtime.autocast():
            return self.embedder(batch.to(self.runtime.device, non_blocking=True))


def make_extractor(
    backbone: Backbone, model: ModelSettings, runtime: Runtime, decoders: int
) -> Extractor:
    """Make what computes features of a frozen backbone, in the engine that the settings name.

    Raises:
        ConfigError: That engine is not installed, or does not compute on the runtime's device.
    """
    device = runtime.device
    with one_thread_each():
        embedder = Embedder(backbone, model.stages).to(device)
        engine = in_engine(embedder, model.engine, backbone.spec.size, device)
    threads = runtime.threads if device.type == "cpu" else decoders
    return Extractor(engine, backbone, runtime, threads)


def find_features(
    extractor: Extractor,
    source: ImageSource,
    rows: Rows,
    digest: NDArray[np.uint8],
    store: FeatureCache,
    progress: OnProgress = silent,
) -> CacheHits:
    """Find the features of some rows, computing those the cache does not have.

    Args:
        extractor: What computes them.
        source: The pictures.
        rows: (N,) readable rows of the source.
        digest: (N, 32) their content.
        store: Where features are kept.
        progress: Told how many rows are done.

    Returns:
        The findings, with nothing missing.

    Raises:
        OutputError: They cannot be kept.
        DataError: A picture can no longer be read.
    """
    runtime, spec = extractor.runtime, extractor.backbone.spec
    pictures = Pictures(source, rows, spec, threads=extractor.threads, keep_bytes=0, digest=digest)
    todo = _first_of_each(store.find(digest).missing, digest)
    # All must have looked before the first one adds to the cache, or the shares would not fit.
    runtime.wait()
    mine = share(todo, runtime.rank, runtime.processes)
    _compute(extractor, pictures, mine, digest, store, progress)
    runtime.wait()
    # Where processes do not share a disk, each computes what the others kept to themselves; and
    # another run may have made room in the meantime.
    for _ in range(_ATTEMPTS):
        hits = store.find(digest)
        if not len(hits.missing):
            runtime.wait()
            hits.touch()
            return hits
        rest = _first_of_each(hits.missing, digest)
        _compute(extractor, pictures, rest, digest, store, progress)
    raise OutputError(
        f"features vanish from the cache {store.root} as fast as they are computed; another run "
        "keeps it too small. Use a --cache-dir of its own, or --no-cache."
    )


def _first_of_each(samples: Rows, digest: NDArray[np.uint8]) -> Rows:
    _, first = np.unique(digest[samples], axis=0, return_index=True)
    return samples[np.sort(first)]


def _compute(
    extractor: Extractor,
    pictures: Pictures,
    samples: Rows,
    digest: NDArray[np.uint8],
    store: FeatureCache,
    progress: OnProgress,
) -> None:
    parts: list[tuple[Rows, NDArray[np.float32]]] = []
    waiting = 0
    for done, (index, features) in enumerate(extractor.stream(pictures, samples), 1):
        parts.append((index, features))
        waiting += len(index)
        progress(min(done * TILE, len(samples)), len(samples))
        if waiting >= _SHARD or done * TILE >= len(samples):
            kept = np.concatenate([index for index, _ in parts])
            store.add(digest[kept], np.concatenate([rows for _, rows in parts]))
            parts, waiting = [], 0


class FeatureTable(Protocol):
    """(N, D) features that may be too many to hold at once."""

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        ...

    def tiles(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Give the features in fixed tiles of consecutive samples."""
        ...


class GivenFeatures:
    """Features the user brought.

    Args:
        matrix: (N, D) of any float type, in memory or mapped from a file.
        rows: (M,) rows that are samples; None: all.
    """

    def __init__(self, matrix: NDArray[np.floating[Any]], rows: Rows | None = None) -> None:
        self.matrix = matrix
        self.rows = np.arange(len(matrix)) if rows is None else rows

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        return len(self.rows), self.matrix.shape[1]

    def tiles(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Give them in tiles, so that no second copy of all is held."""
        for start in range(0, len(self.rows), _GIVEN_TILE):
            rows = self.rows[start : start + _GIVEN_TILE]
            yield slice(start, start + len(rows)), self.matrix[rows].astype(np.float32)


def fit_scaling(table: FeatureTable, count: int) -> FeatureScaling:
    """Learn mean and spread of the square-rooted features of the first `count` samples."""
    width = table.shape[1]
    total, squares = np.zeros(width), np.zeros(width)
    for tile, features in table.tiles():
        known = features[: max(0, count - tile.start)]
        rooted = signed_root(torch.from_numpy(known)).double().numpy()
        total += rooted.sum(axis=0)
        squares += (rooted**2).sum(axis=0)
    mean = total / count
    spread = np.sqrt(np.maximum(squares / count - mean**2, 0))
    scaling = FeatureScaling(width)
    scaling.mean.copy_(torch.from_numpy(mean))
    # A feature that never changes says nothing; one over its rounding error would say a lot.
    steady = spread < 1e-6 * np.maximum(1, np.abs(mean))
    scaling.scale.copy_(torch.from_numpy(np.where(steady, 0, 1 / np.where(steady, 1, spread))))
    return scaling


def scaled_features(
    table: FeatureTable, scaling: FeatureScaling, workspace: Path | None
) -> NDArray[np.float32]:
    """Give (N, D) scaled features, in memory or, if they are many, in a mapped file.

    Args:
        table: N samples.
        scaling: How to scale them.
        workspace: Folder for the mapped file; None: always in memory.
    """
    if workspace is None or 4 * math.prod(table.shape) <= _IN_MEMORY:
        matrix = np.empty(table.shape, np.float32)
    else:
        path = workspace / "features.npy"
        matrix = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=table.shape)
    for tile, features in table.tiles():
        matrix[tile] = scaling(torch.from_numpy(features)).numpy()
    return matrix
