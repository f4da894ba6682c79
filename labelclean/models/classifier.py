"""Classifiers of pictures: a backbone and a head, trained together."""

import torch
from torch import Tensor, nn

from labelclean.models.backbones import Backbone
from labelclean.models.embedder import Pixels
from labelclean.models.head import Answer, Head
from labelclean.models.split import split_network


class PictureClassifier(nn.Module):
    """A backbone and a head on its pooled last layer, trained together.

    With frozen stages the lower part of the backbone stays as it is, so that what it says about a
    picture can be computed once (`lower`) and given in place of the picture.

    Args:
        backbone: The network; it becomes part of this one.
        head: The classifier on `width` features, see `feature_width`.
        frozen_stages: Stages that are not trained, counted from the input.
    """

    def __init__(self, backbone: Backbone, head: Head, frozen_stages: int = 0) -> None:
        super().__init__()
        self.pixels = Pixels(backbone.spec)
        self.network = backbone.network
        self.head = head
        # A plain list: the parts are made of the network's own modules and must not count twice.
        self._parts = list(split_network(backbone, frozen_stages)) if frozen_stages else []
        if self._parts:
            self._parts[0].requires_grad_(False)

    def train(self, mode: bool = True) -> "PictureClassifier":
        """Switch to training; frozen stages keep the statistics they came with."""
        super().train(mode)
        if self._parts:
            self._parts[0].eval()
        return self

    @torch.no_grad()
    def lower(self, pictures: Tensor) -> Tensor:
        """Give (B, H, W, D) float16 maps of the frozen stages for (B, S, S, 3) uint8 pictures."""
        maps: Tensor = self._parts[0](self.pixels(pictures))
        return maps.permute(0, 2, 3, 1).half()

    def embed(self, batch: Tensor) -> Tensor:
        """Give (B, D) features of (B, S, S, 3) uint8 pictures, or of their `lower` maps."""
        if not self._parts:
            features: Tensor = self.network(self.pixels(batch)).flatten(1)
            return features
        maps = self.lower(batch) if batch.dtype == torch.uint8 else batch
        above: Tensor = self._parts[1](maps.permute(0, 3, 1, 2).float()).flatten(1)
        return above

    def forward(self, batch: Tensor) -> Answer:
        """Answer (B, S, S, 3) uint8 pictures, or their `lower` maps."""
        answer: Answer = self.head(self.embed(batch))
        return answer


def feature_width(backbone: Backbone) -> int:
    """Count the features of a backbone's pooled last layer by asking it."""
    network = backbone.network
    training = network.training
    size = backbone.spec.size
    with torch.inference_mode():
        width = network.eval()(torch.zeros(1, 3, size, size)).flatten(1).shape[1]
    network.train(training)
    return int(width)
