"""What the frozen stages of a network say about pictures, computed once and trained on."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelclean.models.backbones import Backbone
from labelclean.models.classifier import PictureClassifier
from labelclean.models.head import Head
from labelclean.training.batches import Rows
from labelclean.training.inference import outputs
from labelclean.training.pictures import Augmentation, Pictures
from labelclean.training.runtime import Runtime

_MOST_BYTES = 4 * 2**30
"""Maps of more bytes are not kept: the frozen stages then look at every picture in every epoch."""


class Maps:
    """The maps of some samples, as batches.

    Args:
        maps: (N, H, W, D) float16.
        augmentation: Applied when an epoch is named; None: never.
    """

    def __init__(self, maps: NDArray[np.float16], augmentation: Augmentation | None) -> None:
        self.maps, self.augmentation = maps, augmentation

    def __len__(self) -> int:
        return len(self.maps)

    def batches(self, batches: Iterable[Rows], epoch: int | None = None) -> Iterator[Tensor]:
        """Give (B, H, W, D) float16 for every batch of sample numbers."""
        for index in batches:
            maps = self.maps[index]
            if epoch is not None and self.augmentation is not None:
                self.augmentation(maps, index, epoch, len(self.maps))
            yield torch.from_numpy(maps)


def frozen_inputs(
    backbone: Backbone, stages: int, pictures: Pictures, runtime: Runtime
) -> Maps | Pictures:
    """Look at all pictures once with the frozen stages; very many stay pictures.

    Args:
        backbone: The network.
        stages: How many of its stages stay as they are.
        pictures: What to look at, and how it is augmented.
        runtime: Where to compute.
    """
    head = Head(1, 1, hidden=0, attention=False)
    model = PictureClassifier(backbone, head, stages).to(runtime.device)
    size, augmentation = pictures.spec.size, pictures.augmentation
    example = torch.zeros(1, size, size, 3, dtype=torch.uint8, device=runtime.device)
    shape = model.lower(example).shape[1:]
    if len(pictures) * 2 * int(np.prod(shape)) > _MOST_BYTES:
        return pictures
    if augmentation is not None:
        cells = max(1, round(augmentation.pad * shape[0] / size))
        augmentation = replace(augmentation, pad=cells, mirror=False)
    return Maps(outputs(model.lower, model, pictures, runtime), augmentation)
