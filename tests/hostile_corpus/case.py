"""A hostile file, the command that meets it, and what must come of it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from planted import opinions

ROWS = 24
DONE, USAGE, DATA = 0, 2, 3


@dataclass(frozen=True)
class Case:
    """One hostile input.

    Args:
        name: What is hostile about it.
        arguments: Of `labelclean`.
        code: Exit code.
        words: What the message must contain.
        rows: Rows of issues.parquet that must come out; None: no run is made.
        foreign: The file, and the kind of reader a peer would use: csv, npy, images or none.
    """

    name: str
    arguments: tuple[object, ...]
    code: int = DATA
    words: str = ""
    rows: int | None = None
    foreign: tuple[str, Path] | None = None


class Poison:
    """Unpickling it makes a file: proof that code was run."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.mark,)


def labels(count: int = ROWS) -> np.ndarray:
    return np.arange(count) % 3


def write_pictures(folder: Path, count: int = ROWS) -> list[str]:
    """Write small pictures of three colours; gives their paths."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    names = []
    for row in range(count):
        pixels = rng.integers(0, 90, (8, 8, 3), dtype=np.uint8)
        pixels[..., row % 3] += 120
        names.append(f"images/{row}.png")
        Image.fromarray(pixels).save(folder / names[-1])
    return names


def write_probs(path: Path, count: int = ROWS, classes: int = 3) -> Path:
    """Write what a model says about `labels(count)`."""
    np.save(path, opinions(labels(count) % classes, classes))
    return path


def audit(table: Path, probs: Path, *flags: object) -> tuple[object, ...]:
    """Audit without training, into a folder named after the table."""
    out = table.with_name(f"{table.name}-run")
    return ("audit", table, "--pred-probs", probs, "--out", out, "--workers", "1", *flags)
