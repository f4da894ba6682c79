"""The same network in other engines, run as their manuals say; and what the machine can do."""

import importlib.util
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelclean.benchmark.extraction import Contestant, ExtractionCase, in_memory_tiles
from labelclean.models.backbones import build_backbone
from labelclean.models.embedder import Embedder
from labelclean.models.engines import open_session
from labelclean.models.onnx import write_network
from labelclean.training.features import TILE
from labelclean.training.runtime import one_thread_each, start_runtime

_INPUT, _OUTPUT = "pictures", "features"
_SIDE = 2048  # of the matrices whose product shows what the machine can do
Computes = Callable[[NDArray[np.uint8]], NDArray[np.float32]]


def other_engines() -> dict[str, Contestant]:
    """Give what times the bare forward pass in each engine that is installed."""
    exporters = ("onnx", "onnxscript")
    return {
        name: partial(_time_engine, name)
        for name in _ENGINES
        if all(importlib.util.find_spec(needed) for needed in (*exporters, name))
    }


def engine_difference(case: ExtractionCase, name: str) -> float:
    """Give the largest difference of features from ours, relative to the largest feature."""
    backbone, tiles, threads = in_memory_tiles(replace(case, limit=TILE))
    with one_thread_each():
        embedder = Embedder(backbone, 3)
        with torch.inference_mode():
            expected = embedder(tiles[0]).numpy()
    found = _opened(name, embedder, tiles[0], threads)(tiles[0].numpy())
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def _time_engine(name: str, case: ExtractionCase) -> float:
    backbone, tiles, threads = in_memory_tiles(case)
    with one_thread_each():
        embedder = Embedder(backbone, 3)
    answer = _opened(name, embedder, tiles[0], threads)
    for tile in tiles[:2]:
        answer(tile.numpy())
    began = time.perf_counter()
    for tile in tiles:
        answer(tile.numpy())
    return time.perf_counter() - began


def _opened(name: str, network: nn.Module, tile: Tensor, threads: int | None) -> Computes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        write_network(network, tile, _INPUT, _OUTPUT, path)
        return _ENGINES[name](path, threads or 0)


def _onnxruntime(path: Path, threads: int) -> Computes:
    session = open_session(path, threads)
    return lambda tile: np.asarray(session.run([_OUTPUT], {_INPUT: tile})[0])


def _openvino(path: Path, threads: int) -> Computes:
    import openvino  # noqa: PLC0415 (an extra)

    settings = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "THROUGHPUT"}
    if threads:
        settings["INFERENCE_NUM_THREADS"] = str(threads)
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(path.read_bytes()), "CPU", settings)
    return lambda tile: np.asarray(compiled(tile)[0])


_ENGINES: Mapping[str, Callable[[Path, int], Computes]] = {
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
}


def multiply_adds(case: ExtractionCase) -> int:
    """Count the multiply-adds of the network's convolutions and products for one picture."""
    backbone = build_backbone(case.backbone, pretrained=True, image_size=case.size)
    counted = 0

    def count(layer: nn.Module, _: object, result: Tensor) -> None:
        nonlocal counted
        if isinstance(layer, nn.Conv2d | nn.Linear):
            each = layer.weight[0].numel()
            counted += result.numel() * each

    network = backbone.network.eval()
    for layer in network.modules():
        layer.register_forward_hook(count)
    with torch.inference_mode():
        network(torch.zeros(1, 3, backbone.spec.size, backbone.spec.size))
    return counted


def product_pace(case: ExtractionCase) -> float:
    """Give the multiply-adds a second of large matrix products, one on every thread."""
    threads = start_runtime("cpu", threads=case.threads).threads
    matrix = torch.rand(_SIDE, _SIDE)

    def multiply(_: int) -> None:
        torch.mm(matrix, matrix)

    with one_thread_each(), ThreadPoolExecutor(threads) as pool:
        list(pool.map(multiply, range(threads)))
        began = time.perf_counter()
        list(pool.map(multiply, range(2 * threads)))
        seconds = time.perf_counter() - began
    return 2 * threads * _SIDE**3 / seconds
