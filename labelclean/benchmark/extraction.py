"""How fast features are extracted, beside the bare network and beside a plain PyTorch loop.

Every contestant runs in a process of its own, so that none inherits another's allocator or threads.
"""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from labelclean.data.read import read_manifest
from labelclean.data.scan import scan_images
from labelclean.data.sources import ImageSource, open_source
from labelclean.models.backbones import Backbone, build_backbone
from labelclean.models.embedder import Embedder
from labelclean.training.cache import FeatureCache
from labelclean.training.features import TILE, Extractor, find_features
from labelclean.training.pictures import Pictures
from labelclean.training.runtime import one_thread_each, start_runtime

_WARM_UP = 4


@dataclass(frozen=True, slots=True)
class ExtractionCase:
    """What is measured.

    Args:
        manifest: A manifest of readable pictures.
        limit: Use only the first rows; None: all.
        backbone: Its name.
        size: Side of its input, in pixels.
        threads: Threads; None: one per core.
    """

    manifest: str
    limit: int | None
    backbone: str
    size: int
    threads: int | None


Contestant = Callable[[ExtractionCase], float]
"""Gives the seconds it took, in a process of its own."""


def time_extraction(
    case: ExtractionCase, rounds: int, others: Mapping[str, Contestant] = MappingProxyType({})
) -> dict[str, list[float]]:
    """Give the seconds of `bare`, `ours`, `plain` and others in every round; they take turns."""
    contestants: dict[str, Contestant] = {
        "bare": bare,
        "ours": ours,
        "plain": plain_extraction,
        **others,
    }
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                seconds[name].append(pool.submit(contestant, case).result())
    return seconds


def in_memory_tiles(case: ExtractionCase) -> tuple[Backbone, list[Tensor], int]:
    """Give the network, pictures that are decoded and resized, in tiles, and the threads to use."""
    source, backbone = _open(case)
    runtime = start_runtime("cpu", threads=case.threads)
    rows = np.arange(len(source))
    pictures = Pictures(source, rows, backbone.spec, threads=runtime.threads, keep_bytes=0)
    cuts = np.array_split(rows, -(-len(rows) // TILE))
    return backbone, list(pictures.batches(cuts)), runtime.threads


def bare(case: ExtractionCase) -> float:
    """Time the tuned network alone, on pictures that are already decoded, resized and in memory."""
    backbone, batches, threads = in_memory_tiles(case)
    with one_thread_each(), ThreadPoolExecutor(threads) as pool:
        embedder = Embedder(backbone, 3)

        def forward(batch: Tensor) -> int:
            with torch.inference_mode():
                return len(embedder(batch))

        list(pool.map(forward, batches[:_WARM_UP]))
        began = time.perf_counter()
        list(pool.map(forward, batches))
        return time.perf_counter() - began


def ours(case: ExtractionCase) -> float:
    """Time our extraction from encoded files to cached features."""
    source, backbone = _open(case)
    runtime = start_runtime("cpu", threads=case.threads)
    digest = scan_images(source, workers=1).digest
    with one_thread_each():
        embedder = Embedder(backbone, 3)
    extractor = Extractor(embedder, backbone, runtime, runtime.threads)
    with tempfile.TemporaryDirectory() as folder:
        store = FeatureCache(Path(folder), extractor.key, embedder.width, 1e12)
        some = np.arange(min(_WARM_UP * TILE, len(source)))
        pictures = Pictures(source, some, backbone.spec, threads=runtime.threads, keep_bytes=0)
        for _ in extractor.stream(pictures, some):
            pass
        began = time.perf_counter()
        find_features(extractor, source, np.arange(len(source)), digest, store)
        return time.perf_counter() - began


def plain_extraction(case: ExtractionCase) -> float:
    """Time what one writes first: a DataLoader, eval(), no_grad(), batches of 64, no tuning."""
    source, backbone = _open(case)
    if case.threads is not None:
        torch.set_num_threads(case.threads)
    spec, network = backbone.spec, backbone.network.eval()
    steps = transforms.Compose(
        [
            transforms.ToPILImage(),
            transforms.Resize(spec.size, transforms.InterpolationMode.BICUBIC),
            transforms.CenterCrop(spec.size),
            transforms.ToTensor(),
            transforms.Normalize(spec.mean, spec.std),
        ]
    )
    workers = case.threads or os.cpu_count() or 1
    loader = DataLoader(_Plain(source, steps), batch_size=64, num_workers=workers)
    began = time.perf_counter()
    with torch.no_grad():
        for batch in loader:
            network(batch)
    return time.perf_counter() - began


class _Plain(Dataset[Tensor]):
    def __init__(self, source: ImageSource, steps: Callable[[np.ndarray], Tensor]) -> None:
        self.source, self.steps = source, steps

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, row: int) -> Tensor:
        return self.steps(self.source.load(row)[0])


def _open(case: ExtractionCase) -> tuple[ImageSource, Backbone]:
    manifest = read_manifest(case.manifest, limit=case.limit)
    backbone = build_backbone(case.backbone, pretrained=True, image_size=case.size)
    return open_source(manifest), backbone
