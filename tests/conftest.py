"""Fixtures shared by all rooms: tiny real pictures and tables of them."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

# For this process and all that tests start. Threads that wait must sleep: where other work wants
# the cores, those that spin burn ten times the work itself.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest file: what is begun last keeps one core busy and the others idle."""
    items.sort(key=lambda item: item.path.name != "test_readme.py")


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


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Compute with one thread, also after a command that took more: the networks are tiny."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(scope="module")
def plain_figures() -> Iterator[None]:
    """Draw no heat maps: for tests of something else, where drawing would take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labelclean.outputs.run_folder.matrix_png", lambda *_, **__: b"a picture")
        yield
