"""Fixtures shared by all rooms: tiny real pictures and tables of them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def pictures(tmp_path: Path) -> Callable[[int], list[str]]:
    """Write n different small PNG files below tmp_path/images; gives paths relative to tmp_path."""

    def make(count: int) -> list[str]:
        folder = tmp_path / "images"
        folder.mkdir(exist_ok=True)
        rng = np.random.default_rng(7)
        names = []
        for i in range(count):
            pixels = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{i}.png")
            names.append(f"images/{i}.png")
        return names

    return make
