"""A small real data set with planted errors, made without a download."""

import csv
import io
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from labelclean.benchmark.noise import inject
from labelclean.errors import ConfigError

_RATE = 0.1
DATASET, _TRUTH, PICTURES = "dataset.csv", "truth.csv", "images"


@dataclass(frozen=True, slots=True)
class Demo:
    """What was written.

    Args:
        folder: Where.
        dataset: The table with planted errors.
        truth: The table with the true labels.
        rows: Number of pictures.
        planted: Number of wrong labels.
    """

    folder: Path
    dataset: Path
    truth: Path
    rows: int
    planted: int


def write_demo(folder: Path, *, seed: int = 0, overwrite: bool = False) -> Demo:
    """Write scikit-learn's handwritten digits with one label in ten made wrong.

    All 1,797 scans, as grey PNG files of 8 by 8 pixels, as they were published: enlarging them
    would only invent pixels that the model's own resizing then has to undo. Exactly 10 % of every
    digit, rounded, get one of the nine other labels. Files of the folder that are not ours stay.

    Args:
        folder: Where to write; created if missing.
        seed: Decides which labels are wrong; the same seed gives the same bytes.
        overwrite: Replace the demo's files in a folder that is not empty.

    Raises:
        ConfigError: The folder is not empty, or is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; name a folder for the demo.")
    if not overwrite and folder.is_dir() and any(folder.iterdir()):
        raise ConfigError(
            f"{folder} is not empty; name another folder, or pass --overwrite to replace the "
            f"demo's files in it ({DATASET}, {_TRUTH}, {PICTURES}/)."
        )
    if seed < 0:
        raise ConfigError(f"--seed is {seed}; it must be 0 or more.")
    pictures, true = load_digits()
    noise = inject("symmetric", true, 10, _RATE, np.random.default_rng(seed), balanced=True)
    names = [f"{PICTURES}/{row:04d}.png" for row in range(len(true))]
    files = {name: _png(pixels) for name, pixels in zip(names, pictures, strict=True)}
    files[_TRUTH] = _csv(["image", "true_label"], names, true)
    # Last, so that whoever finds the data set finds all of it.
    files[DATASET] = _csv(["image", "label"], names, noise.label)
    _move_in(folder, files)
    return Demo(folder, folder / DATASET, folder / _TRUTH, len(true), int(noise.flipped.sum()))


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Give the scans, (1797, 8, 8) uint8 in 0..255, and their digits, (1797,) int64."""
    from sklearn import datasets  # noqa: PLC0415 (a second to import, and only the demo needs it)

    bunch = datasets.load_digits()
    # Scanned in 17 levels, 0..16.
    return np.rint(bunch.images * (255.0 / 16.0)).astype(np.uint8), bunch.target.astype(np.int64)


def _png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return buffer.getvalue()


def _csv(header: list[str], names: list[str], label: np.ndarray) -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(names, label.tolist(), strict=True))
    return buffer.getvalue().encode()


def _move_in(folder: Path, files: dict[str, bytes]) -> None:
    """Write everything aside first, then rename file by file: a full disk leaves nothing behind."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".labelclean-demo-", dir=folder.parent) as aside:
        staged = Path(aside)
        (staged / PICTURES).mkdir()
        for name, content in files.items():
            (staged / name).write_bytes(content)
        (folder / PICTURES).mkdir(parents=True, exist_ok=True)
        for name in files:
            (staged / name).replace(folder / name)
