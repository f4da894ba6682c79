"""Pictures that show none of the classes, made of the data set's own: to learn outliers from.

Three kinds take turns. *Mixed*: two halves of two pictures. *Corrupted*: tiles in another order, a
small part as a close-up, or hardly anything left under noise. *Foreign*: scribbles and shapes, a
piece of one of two photographs that scikit-learn brings along, or a texture.
"""

import hashlib
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from labelclean.arrays import Ints
from labelclean.data.looks import Look, look_at
from labelclean.data.sources import ImageSource

MIXED, CORRUPTED, FOREIGN = STRANGE = ("mixed", "corrupted", "foreign")
_VERSION = b"strange 1"
_TILES = (3, 4)
_CLOSE = (0.2, 0.35)
_PHOTOGRAPHS = ("china.jpg", "flower.jpg")

_Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class StrangePictures:
    """Made pictures, by number; an `ImageSource`.

    Args:
        source: The data set's pictures.
        rows: (P, 2) rows of two pictures each is made of, of two classes.
        digest: (P, 2, 32) what these contain.
        seed: Seed of every draw.
    """

    source: ImageSource
    rows: Ints
    digest: NDArray[np.uint8]
    seed: int

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> "StrangePictures":
        """Take some rows; see `ImageSource.part`."""
        return StrangePictures(
            self.source, self.rows[start:stop], self.digest[start:stop], self.seed
        )

    def content(self) -> NDArray[np.uint8]:
        """(P, 32) digests of the made pictures, known before they are made."""
        keys = [self._key(at, *self.digest[at]) for at in range(len(self))]
        return np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 32)

    def load(self, row: int, min_side: int | None = None) -> tuple[_Pixels, bytes]:
        """Make a picture; see `ImageSource.load`."""
        first, second = (self.source.load(int(at), min_side) for at in self.rows[row])
        made = make_strange(first[0], second[0], kind_of(row), self._rng(row))
        said = (np.frombuffer(digest, np.uint8) for _, digest in (first, second))
        return made, self._key(row, *said)

    def inspect(self, row: int) -> tuple[int, int, bytes, Look]:
        """Look at a made picture; see `ImageSource.inspect`."""
        pixels, digest = self.load(row)
        return pixels.shape[1], pixels.shape[0], digest, look_at(Image.fromarray(pixels))

    def _rng(self, row: int) -> np.random.Generator:
        return np.random.default_rng([abs(self.seed), int(self.seed < 0), 7, row])

    def _key(self, row: int, one: NDArray[np.uint8], other: NDArray[np.uint8]) -> bytes:
        head = _VERSION + f" {row} {self.seed} ".encode()
        return hashlib.sha256(head + one.tobytes() + other.tobytes()).digest()


def kind_of(number: int) -> str:
    """Give the kind of a made picture."""
    return STRANGE[number % len(STRANGE)]


def make_strange(one: _Pixels, other: _Pixels, kind: str, rng: np.random.Generator) -> _Pixels:
    """Make a picture that shows none of the classes.

    Args:
        one: (H, W, 3) a picture, whose size and ground the made one has.
        other: (h, w, 3) a picture of another class.
        kind: One of STRANGE.
        rng: Where every draw comes from.
    """
    if kind == MIXED:
        return _halves(one, other, rng)
    ways = (_shuffled, _close_up, _noisy) if kind == CORRUPTED else (_scribble, _piece, _texture)
    made = ways[int(rng.integers(len(ways)))](one, rng)
    return np.array(made)  # Pillow's arrays cannot be written to, and torch wants ours


def _halves(one: _Pixels, other: _Pixels, rng: np.random.Generator) -> _Pixels:
    height, width = one.shape[:2]
    fitted = np.asarray(Image.fromarray(other).resize((width, height), Image.Resampling.BILINEAR))
    made = one.copy()
    if rng.random() < 0.5:
        made[:, width // 2 :] = fitted[:, width // 2 :]
    else:
        made[height // 2 :] = fitted[height // 2 :]
    return made


def _shuffled(one: _Pixels, rng: np.random.Generator) -> _Pixels:
    tiles = int(rng.choice(_TILES))
    height, width = (max(1, side // tiles) for side in one.shape[:2])
    made = one.copy()
    places = [(down, across) for down in range(tiles) for across in range(tiles)]
    for (to_y, to_x), at in zip(places, rng.permutation(len(places)), strict=True):
        y, x = places[at]
        tile = one[y * height : (y + 1) * height, x * width : (x + 1) * width]
        made[to_y * height : to_y * height + tile.shape[0],
             to_x * width : to_x * width + tile.shape[1]] = tile  # fmt: skip
    return made


def _close_up(one: _Pixels, rng: np.random.Generator) -> _Pixels:
    height, width = one.shape[:2]
    share = rng.uniform(*_CLOSE)
    tall, wide = (min(side, max(2, round(share * side))) for side in (height, width))
    top, left = rng.integers(0, height - tall + 1), rng.integers(0, width - wide + 1)
    part = Image.fromarray(one[top : top + tall, left : left + wide])
    return np.asarray(part.resize((width, height), Image.Resampling.BICUBIC))


def _noisy(one: _Pixels, rng: np.random.Generator) -> _Pixels:
    noise = rng.normal(0, rng.uniform(60, 120), one.shape)
    return np.clip(0.15 * one + 0.85 * float(one.mean()) + noise, 0, 255).astype(np.uint8)


def _scribble(one: _Pixels, rng: np.random.Generator) -> _Pixels:
    height, width = one.shape[:2]
    ground = np.median(one.reshape(-1, 3), axis=0)
    ink = 255 - ground if rng.random() < 0.5 else rng.integers(0, 256, 3)
    scale = 4 if min(height, width) < 64 else 1
    canvas = Image.new("RGB", (width * scale, height * scale), tuple(int(v) for v in ground))
    draw, size = ImageDraw.Draw(canvas), np.array(canvas.size)
    thick = max(1, int(min(canvas.size) * rng.uniform(0.015, 0.06)))
    for _ in range(int(rng.integers(1, 4))):
        centre, reach = rng.uniform(0.3, 0.7, 2), rng.uniform(0.1, 0.35)
        points = (centre + rng.uniform(-reach, reach, (int(rng.integers(2, 9)), 2))) * size
        low, high = points.min(axis=0), points.max(axis=0)
        shape = rng.integers(4)
        if shape == 0:
            draw.ellipse([*low, *high], outline=tuple(int(v) for v in ink), width=thick)
        elif shape == 1:
            draw.polygon([*map(tuple, points)], fill=tuple(int(v) for v in ink))
        else:
            draw.line([*map(tuple, points)], tuple(int(v) for v in ink), thick, joint="curve")
    return np.asarray(canvas.resize((width, height), Image.Resampling.BOX))


def _piece(one: _Pixels, rng: np.random.Generator) -> _Pixels:
    photograph = _photographs()[int(rng.integers(len(_PHOTOGRAPHS)))]
    side = int(rng.integers(48, min(photograph.shape[:2]) + 1))
    top = int(rng.integers(0, photograph.shape[0] - side + 1))
    left = int(rng.integers(0, photograph.shape[1] - side + 1))
    piece = Image.fromarray(photograph[top : top + side, left : left + side])
    return np.asarray(piece.resize((one.shape[1], one.shape[0]), Image.Resampling.BICUBIC))


def _texture(one: _Pixels, rng: np.random.Generator) -> _Pixels:
    cells = int(rng.integers(2, 24))
    coarse = rng.integers(0, 256, (cells, cells, 3)).astype(np.uint8)
    if rng.random() < 0.5:
        coarse[..., 1:] = coarse[..., :1]
    how = Image.Resampling.NEAREST if rng.random() < 0.3 else Image.Resampling.BICUBIC
    return np.asarray(Image.fromarray(coarse).resize((one.shape[1], one.shape[0]), how))


@cache
def _photographs() -> tuple[_Pixels, ...]:
    from sklearn.datasets import load_sample_image  # noqa: PLC0415

    return tuple(np.asarray(load_sample_image(name), np.uint8) for name in _PHOTOGRAPHS)
