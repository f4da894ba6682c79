"""Engines that compute a frozen network: PyTorch, or ONNX Runtime where it is installed."""

import importlib.util
import tempfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from labelclean.errors import ConfigError, OutputError
from labelclean.models.embedder import Embedder
from labelclean.models.onnx import NEEDED, write_network

_INPUT, _OUTPUT = "pictures", "features"
_AGREEMENT = 1e-3  # of the largest feature


class Embeds(Protocol):
    """What gives features of pictures.

    Attributes:
        width: Number of features D.
        layers: What the features are, in order, and by which engine, for the cache's key.
    """

    width: int
    layers: tuple[str, ...]

    def __call__(self, pictures: Tensor) -> Tensor:
        """Give (B, D) features of (B, S, S, 3) uint8 pictures."""
        ...


class OnnxEmbedder:
    """A frozen network in ONNX Runtime; several threads may ask at a time, one core for each.

    Args:
        embedder: The same network in PyTorch, on the CPU.
        size: Side of the pictures.

    Raises:
        OutputError: It cannot be exported, or answers otherwise.
    """

    def __init__(self, embedder: Embedder, size: int) -> None:
        self.width = embedder.width
        self.layers = (*embedder.layers, "onnxruntime")
        generator = torch.Generator().manual_seed(0)
        probe = torch.randint(0, 256, (3, size, size, 3), generator=generator).to(torch.uint8)
        with tempfile.TemporaryDirectory(prefix="labelclean-") as folder:
            path = Path(folder) / "network.onnx"
            write_network(embedder, probe, _INPUT, _OUTPUT, path)
            self._session = open_session(path, threads=1)
        with torch.inference_mode():
            expected = embedder(probe)
        difference = float((self(probe) - expected).abs().max() / expected.abs().max())
        if not difference <= _AGREEMENT:
            raise OutputError(
                f"ONNX Runtime's features differ from PyTorch's by {difference:.2g} of the largest "
                f"one (allowed {_AGREEMENT:.0e}); leave model.engine at torch."
            )

    def __call__(self, pictures: Tensor) -> Tensor:
        """Give (B, D) features of (B, S, S, 3) uint8 pictures."""
        found = self._session.run([_OUTPUT], {_INPUT: pictures.numpy()})[0]
        return torch.from_numpy(np.asarray(found, np.float32))


def in_engine(embedder: Embedder, engine: str, size: int, device: torch.device) -> Embeds:
    """Give what computes a frozen network in the engine that the settings name.

    Args:
        embedder: The network in PyTorch, on the device.
        engine: See `ModelSettings.engine`.
        size: Side of the pictures.
        device: Where to compute.

    Raises:
        ConfigError: The engine is not installed, or does not compute there.
        OutputError: It answers otherwise than PyTorch.
    """
    if engine == "torch":
        return embedder
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"model.engine={engine} needs {', '.join(missing)}; install with `pip install "
            "'labelclean[onnx]'`."
        )
    if device.type != "cpu":
        raise ConfigError(
            f"model.engine={engine} computes on the CPU, and the device is {device.type}; "
            "add --device cpu, or leave model.engine at torch."
        )
    return OnnxEmbedder(embedder, size)


def open_session(path: Path, threads: int) -> Any:
    """Open a network of an ONNX file in ONNX Runtime; 0 threads: as many as it likes."""
    import onnxruntime  # noqa: PLC0415 (an extra)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        path.read_bytes(), options, providers=["CPUExecutionProvider"]
    )
