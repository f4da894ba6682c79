"""Other engines are timed where they are installed; the network's work is counted."""

import importlib.util

import numpy as np
import pytest

from labelclean.benchmark.extraction import ExtractionCase
from labelclean.benchmark.other_engines import engine_difference, multiply_adds, other_engines


def test_multiply_adds_grow_with_the_area():
    small, large = (multiply_adds(ExtractionCase("x", None, "lite0", s, 1)) for s in (64, 128))
    assert large == pytest.approx(4 * small, rel=0.02)
    # EfficientNet-Lite0 is published with 407 million at 224 pixels.
    assert multiply_adds(ExtractionCase("x", None, "lite0", 224, 1)) == pytest.approx(4e8, rel=0.05)


def test_only_what_is_installed_takes_part():
    exporters = all(importlib.util.find_spec(name) for name in ("onnx", "onnxscript"))
    for name in ("onnxruntime", "openvino"):
        assert (name in other_engines()) == bool(exporters and importlib.util.find_spec(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_other_engines_give_the_same_features(name, tmp_path):
    if name not in other_engines():
        pytest.skip(f"{name} or what exports to it is not installed")
    pixels = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "x.npz", X=pixels, y=np.arange(8) % 2)
    case = ExtractionCase(str(tmp_path / "x.npz"), None, "lite0", 64, 1)
    assert engine_difference(case, name) < 1e-3
