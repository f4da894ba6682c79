"""Frozen networks in other engines give the same features, or are refused in plain words."""

import importlib.util

import pytest
import torch

from labelclean.errors import ConfigError
from labelclean.models.backbones import build_backbone
from labelclean.models.embedder import Embedder
from labelclean.models.engines import in_engine
from labelclean.models.onnx import NEEDED
from labelclean.models.settings import ModelSettings

INSTALLED = all(importlib.util.find_spec(name) for name in NEEDED)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def embedder():
    with torch.random.fork_rng():
        return Embedder(build_backbone("test_resnet", pretrained=False, image_size=32), 2)


def test_torch_is_the_network_itself(embedder):
    assert in_engine(embedder, "torch", 32, CPU) is embedder


def test_an_unknown_engine_is_refused():
    with pytest.raises(ConfigError, match="one of torch, onnxruntime"):
        ModelSettings(engine="onyx")


def test_what_is_not_installed_is_named(embedder, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"labelclean\[onnx\]"):
        in_engine(embedder, "onnxruntime", 32, CPU)


@pytest.mark.skipif(not INSTALLED, reason="the extra onnx is not installed")
def test_onnx_runtime_gives_the_same_features(embedder):
    with pytest.raises(ConfigError, match="computes on the CPU"):
        in_engine(embedder, "onnxruntime", 32, torch.device("meta"))
    other = in_engine(embedder, "onnxruntime", 32, CPU)
    pictures = torch.randint(0, 256, (5, 32, 32, 3)).to(torch.uint8)
    with torch.inference_mode():
        expected = embedder(pictures)
    assert torch.allclose(other(pictures), expected, rtol=1e-3, atol=1e-4)
    assert other.width == embedder.width
    assert other.layers != embedder.layers  # features of another engine are kept apart
