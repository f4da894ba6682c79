"""A copy of a data set in which foreign pictures, copies and leaks are planted, as files."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from PIL import Image

from labelclean.arrays import Ints
from labelclean.data.manifest import Manifest
from labelclean.data.sources import ImageSource, open_source
from labelclean.data.splits import HELD_OUT
from labelclean.errors import DataError

_JPEG, _QUALITY, _SMALLER, _CROPPED_TO = "JPEG", 60, 0.6, 0.95


@dataclass(frozen=True, slots=True)
class PlantedAnomalies:
    """Where the planted data set is, and what was planted in its rows.

    Args:
        table: Its .csv, with the columns image, label and split.
        row: (N,) the row of the original that each row comes from; -1: a foreign picture.
        foreign: (f,) rows that got a foreign picture.
        copy: (c,) rows that were added as copies.
        source: (c,) the rows they are copies of.
        way: (c,) index of COPIES.
        leak: (l,) rows of the split `test`.
        leaked: (l,) the rows they show again.
        exact: (l,) whether the content is the same.
    """

    table: Path
    row: Ints
    foreign: Ints
    copy: Ints
    source: Ints
    way: Ints
    leak: Ints
    leaked: Ints
    exact: np.ndarray


def _encoded_again(image: Image.Image) -> Image.Image:
    return image


def _scaled(image: Image.Image) -> Image.Image:
    size = tuple(max(1, round(_SMALLER * side)) for side in image.size)
    return image.resize((size[0], size[1]), Image.Resampling.BICUBIC)


def _cropped(image: Image.Image) -> Image.Image:
    width, height = (round(_CROPPED_TO * side) for side in image.size)
    left, top = (image.width - width) // 2, (image.height - height) // 3
    return image.crop((left, top, left + width, top + height))


def _mirrored(image: Image.Image) -> Image.Image:
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


COPIES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "re-encoded": _encoded_again,
    "scaled": _scaled,
    "cropped": _cropped,
    "mirrored": _mirrored,
}


def plant_anomalies(
    manifest: Manifest,
    others: Sequence[Manifest],
    folder: Path,
    *,
    rate: float,
    copies: int,
    leaks: int,
    seed: int,
) -> PlantedAnomalies:
    """Write the rows of a manifest that are no held-out ones, with anomalies planted.

    Args:
        manifest: Samples with pictures.
        others: Where foreign pictures come from, in turns.
        folder: An empty folder for pictures and table.
        rate: Share of rows that get a foreign picture.
        copies: Rows that are added as copies, a quarter of them of each of COPIES.
        leaks: Rows that are added in a split `test`; every second one has the same content.
        seed: Seed of every draw.

    Raises:
        DataError: There are no foreign pictures, or too few rows.
    """
    rng = np.random.default_rng([seed, 18])
    rows = np.arange(len(manifest))
    if manifest.split is not None:
        rows = rows[~np.isin(manifest.split.astype(str), HELD_OUT)]
    order = rng.permutation(len(rows))
    count = round(rate * len(rows))
    if count and not others:
        raise DataError("foreign pictures are needed; name another manifest with --foreign.")
    if count + copies + leaks > len(rows):
        raise DataError(f"{len(rows)} rows are too few to plant {count + copies + leaks} in.")
    foreign, copied, leaked = np.split(order, [count, count + copies])
    leaked = leaked[:leaks]
    writer = _Writer(folder)
    own, donors = open_source(manifest), [open_source(other) for other in others]
    given = [str(name) for name in manifest.label_values()]
    turn = dict(zip(foreign.tolist(), range(count), strict=True))
    for at, row in enumerate(rows.tolist()):
        source, taken = own, row
        if at in turn:
            source = donors[turn[at] % len(donors)]
            taken = int(rng.integers(len(source)))
        writer.add(_content(source, taken), given[row])
    ways = np.arange(copies) % len(COPIES)
    for at, way in zip(copied.tolist(), ways.tolist(), strict=True):
        writer.add(_changed(own, int(rows[at]), way), given[int(rows[at])])
    exact = np.arange(len(leaked)) % 2 == 0
    for number, at in enumerate(leaked.tolist()):
        row = int(rows[at])
        content = _content(own, row) if exact[number] else _changed(own, row, number // 2 % 4)
        writer.add(content, given[row], "test")
    origin = rows.copy()
    origin[foreign] = -1
    first = len(rows)
    return PlantedAnomalies(
        table=writer.finish(),
        row=np.concatenate([origin, rows[copied], rows[leaked]]),
        foreign=np.sort(foreign),
        copy=first + np.arange(copies),
        source=copied,
        way=ways,
        leak=first + copies + np.arange(len(leaked)),
        leaked=leaked,
        exact=exact,
    )


class _Writer:
    """Writes pictures and their table."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[tuple[str, str, str]] = []
        (folder / "images").mkdir(parents=True)

    def add(self, content: bytes, label: str, split: str = "train") -> None:
        kind = "jpg" if content[:2] == b"\xff\xd8" else "png"
        path = f"images/{len(self.lines):06d}.{kind}"
        (self.folder / path).write_bytes(content)
        self.lines.append((path, label, split))

    def finish(self) -> Path:
        columns = zip(*self.lines, strict=True)
        names = ("image", "label", "split")
        table = {name: list(part) for name, part in zip(names, columns, strict=True)}
        path = self.folder / "dataset.csv"
        pc.write_csv(pa.table(table), path)
        return path


def _content(source: ImageSource, row: int) -> bytes:
    """Give a picture as it is stored; arrays as PNG."""
    read = getattr(source, "read", None)
    if read is not None:
        stored: bytes = read(row)
        return stored
    return _bytes(Image.fromarray(source.load(row)[0]), "PNG")


def _changed(source: ImageSource, row: int, way: int) -> bytes:
    change = list(COPIES.values())[way]
    return _bytes(change(Image.fromarray(source.load(row)[0])), _JPEG)


def _bytes(image: Image.Image, kind: str) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=kind, **({"quality": _QUALITY} if kind == _JPEG else {}))
    return buffer.getvalue()
