"""Pictures on their way to a network: decoded by threads ahead of time, cut square, augmented."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from labelclean.data.images import ImageError
from labelclean.data.sources import ImageSource
from labelclean.errors import DataError
from labelclean.models.backbones import InputSpec
from labelclean.training.batches import Rows

_AHEAD = 3
_MODES = ("nearest", "bilinear", "bicubic")


def square(pixels: NDArray[np.uint8], spec: InputSpec) -> NDArray[np.uint8]:
    """Resize the largest centred square of (H, W, 3) pixels to (S, S, 3), in one step.

    Nothing is cropped of the shorter side: what makes a label right or wrong may be at the edge.
    """
    height, width = pixels.shape[:2]
    side = min(height, width)
    left, top = (width - side) // 2, (height - side) // 2
    middle = torch.from_numpy(pixels)[top : top + side, left : left + side]
    if side == spec.size:
        return middle.numpy()
    # torch resizes bytes as Pillow does, to within one grey level, three to five times as fast.
    smooth = spec.interpolation != "nearest"
    mode = spec.interpolation if spec.interpolation in _MODES else "bicubic"
    planes = F.interpolate(
        middle.permute(2, 0, 1)[None],
        size=(spec.size, spec.size),
        mode=mode if smooth else "nearest-exact",
        antialias=smooth,
    )
    resized: NDArray[np.uint8] = planes[0].permute(1, 2, 0).numpy()
    return resized


@dataclass(frozen=True, slots=True)
class Augmentation:
    """Pad by `pad` pixels, crop back at random, mirror half of the pictures: the papers' recipe.

    Maps of frozen stages are shifted alike, by cells, and never mirrored: what the stages below
    would have said about the mirrored picture is not the mirrored map.

    The draws depend on seed, epoch and sample alone, so a resumed run, or one over several
    processes, sees the same pictures.
    """

    pad: int
    seed: int
    mirror: bool = True

    def __call__(self, pictures: NDArray[Any], index: Rows, epoch: int, samples: int) -> None:
        """Change (B, S, S, 3) pictures of the samples `index` in place."""
        generator = np.random.default_rng([abs(self.seed), 1, epoch])
        shifts = generator.integers(-self.pad, self.pad + 1, (samples, 2))[index]
        mirrored = (generator.random(samples)[index] < 0.5) & self.mirror
        for picture, (down, right), mirror in zip(pictures, shifts, mirrored, strict=True):
            source = picture[:, ::-1] if mirror else picture
            picture[:] = _shifted(source, int(down), int(right))


def _shifted(picture: NDArray[Any], down: int, right: int) -> NDArray[Any]:
    size = len(picture)
    moved = np.zeros_like(picture)
    to_y, to_x = (
        slice(max(down, 0), size + min(down, 0)),
        slice(max(right, 0), size + min(right, 0)),
    )
    from_y, from_x = (
        slice(max(-down, 0), size - max(down, 0)),
        slice(max(-right, 0), size - max(right, 0)),
    )
    moved[to_y, to_x] = picture[from_y, from_x]
    return moved


def as_they_are(batch: Tensor) -> Tensor:
    """Leave a batch alone."""
    return batch


class Pictures:
    """The pictures of some samples, as batches of bytes.

    Args:
        source: All pictures of a manifest.
        rows: (N,) rows of the manifest; sample i is row `rows[i]`.
        spec: What the network expects.
        threads: Threads that decode ahead.
        augmentation: Applied when an epoch is named; None: never.
        keep_bytes: Decoded pictures stay in memory if all of them weigh no more than this.
        digest: (N, 32) what each picture must contain; None: it is not checked.
    """

    def __init__(
        self,
        source: ImageSource,
        rows: Rows,
        spec: InputSpec,
        *,
        threads: int,
        augmentation: Augmentation | None = None,
        keep_bytes: int = 2 * 2**30,
        digest: NDArray[np.uint8] | None = None,
    ) -> None:
        self.source, self.rows, self.spec, self.digest = source, rows, spec, digest
        self.threads, self.augmentation = max(1, threads), augmentation
        self._kept: dict[int, NDArray[np.uint8]] = {}
        self._keep = len(rows) * 3 * spec.size**2 <= keep_bytes

    def __len__(self) -> int:
        return len(self.rows)

    def batches(
        self,
        batches: Iterable[Rows],
        epoch: int | None = None,
        then: Callable[[Tensor], Tensor] = as_they_are,
    ) -> Iterator[Tensor]:
        """Give (B, S, S, 3) uint8 for every batch of sample numbers, prepared ahead by threads.

        Args:
            batches: Sample numbers.
            epoch: The training epoch, for the augmentation; None: pictures as they are.
            then: What the threads go on to do with a batch.
        """
        pending: deque[Future[Tensor]] = deque()
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                for index in batches:
                    pending.append(pool.submit(lambda rows: then(self._batch(rows, epoch)), index))
                    if len(pending) > self.threads + _AHEAD:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()

    def _batch(self, index: Rows, epoch: int | None) -> Tensor:
        pictures = np.empty((len(index), self.spec.size, self.spec.size, 3), np.uint8)
        for place, sample in enumerate(index.tolist()):
            pictures[place] = self._picture(sample)
        if epoch is not None and self.augmentation is not None:
            self.augmentation(pictures, index, epoch, len(self.rows))
        return torch.from_numpy(pictures)

    def _picture(self, sample: int) -> NDArray[np.uint8]:
        kept = self._kept.get(sample)
        if kept is not None:
            return kept
        row = int(self.rows[sample])
        try:
            pixels, content = self.source.load(row, min_side=self.spec.size)
        except ImageError as error:
            raise DataError(
                f"row {row}: the picture could be read at first and now cannot: {error.reason}. "
                "Run again when nothing else changes the files."
            ) from error
        if self.digest is not None and content != self.digest[sample].tobytes():
            # Its features would be kept under another picture's name, for all later runs.
            raise DataError(
                f"row {row}: the picture was changed while it was being read. Run again when "
                "nothing else changes the files."
            )
        picture = square(pixels, self.spec)
        if self._keep:
            self._kept[sample] = picture
        return picture
