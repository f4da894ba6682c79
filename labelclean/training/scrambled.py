"""Pictures cut into tiles that are put together in another order: they show none of the classes."""

from collections.abc import Iterable, Iterator

import numpy as np
from torch import Tensor

from labelclean.training.batches import Rows
from labelclean.training.task import Inputs

_TILES = 4  # along each side


class Scrambled:
    """Samples of which some are scrambled, each in every epoch alike.

    Strokes, textures and colours stay those of the data set, so that nothing but the missing
    object tells them; what a training makes of them shows how it takes rows that fit no class.

    Args:
        inputs: Pictures, or maps of their features, (B, H, W, D) a batch.
        rows: (M,) which samples are scrambled.
        seed: Of the orders.
    """

    def __init__(self, inputs: Inputs, rows: Rows, seed: int) -> None:
        self.inputs, self.seed = inputs, seed
        self.strange = np.zeros(len(inputs), bool)
        self.strange[rows] = True

    def __len__(self) -> int:
        return len(self.inputs)

    def batches(self, batches: Iterable[Rows], epoch: int | None = None) -> Iterator[Tensor]:
        """Give the input of every batch."""
        asked: list[Rows] = []

        def heard() -> Iterator[Rows]:
            for index in batches:
                asked.append(index)
                yield index

        for batch in self.inputs.batches(heard(), epoch):
            index = asked.pop(0)
            places = np.flatnonzero(self.strange[index])
            changed = batch.clone() if len(places) else batch
            for place in places.tolist():
                changed[place] = self._scrambled(batch[place], int(index[place]))
            yield changed

    def _scrambled(self, picture: Tensor, sample: int) -> Tensor:
        side = min(_TILES, *picture.shape[:2])
        height, width = picture.shape[0] // side, picture.shape[1] // side
        order = np.random.default_rng([abs(self.seed), 4, sample]).permutation(side * side)
        changed = picture.clone()
        for to, origin in enumerate(order.tolist()):
            (down, right), (up, left) = divmod(to, side), divmod(origin, side)
            changed[down * height : (down + 1) * height, right * width : (right + 1) * width] = (
                picture[up * height : (up + 1) * height, left * width : (left + 1) * width]
            )
        return changed
