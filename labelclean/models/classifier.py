"""Classifiers of pictures: a backbone and a head, trained together."""

import torch
from torch import Tensor, nn

from labelclean.models.backbones import Backbone
from labelclean.models.embedder import Pixels
from labelclean.models.head import Answer, Head


class PictureClassifier(nn.Module):
    """A backbone and a head on its pooled last layer, trained together.

    Args:
        backbone: The network; it becomes part of this one.
        head: The classifier on `width` features, see `feature_width`.
    """

    def __init__(self, backbone: Backbone, head: Head) -> None:
        super().__init__()
        self.pixels = Pixels(backbone.spec)
        self.network = backbone.network
        self.head = head

    def embed(self, pictures: Tensor) -> Tensor:
        """Give (B, D) features of (B, S, S, 3) uint8 pictures."""
        features: Tensor = self.network(self.pixels(pictures)).flatten(1)
        return features

    def forward(self, pictures: Tensor) -> Answer:
        """Answer (B, S, S, 3) uint8 pictures."""
        answer: Answer = self.head(self.embed(pictures))
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
