"""Classifiers: a head on features, or a whole network on pictures; both may carry attention."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from labelclean.models.backbones import Backbone
from labelclean.models.embedder import Pixels


class Answer(NamedTuple):
    """What a classifier says about a batch.

    Args:
        logits: (B, C).
        attention: (B,) the attention logit c, tau = sigmoid(c); None without an attention head.
    """

    logits: Tensor
    attention: Tensor | None


class Head(nn.Module):
    """A linear classifier on features, with an optional hidden layer and attention head.

    Args:
        width: Number of features D.
        num_classes: Number of classes C.
        hidden: Units of the hidden layer; 0: none.
        attention: Add one Linear(. -> 1) beside the classifier, as NAL publishes it.
    """

    def __init__(self, width: int, num_classes: int, *, hidden: int, attention: bool) -> None:
        super().__init__()
        layers = (nn.Linear(width, hidden), nn.ReLU()) if hidden else ()
        self.body = nn.Sequential(*layers)
        self.classifier = nn.Linear(hidden or width, num_classes)
        self.attention = nn.Linear(hidden or width, 1) if attention else None

    def forward(self, features: Tensor) -> Answer:
        """Answer (B, D) features."""
        body = self.body(features)
        attention = None if self.attention is None else self.attention(body).squeeze(1)
        return Answer(self.classifier(body), attention)


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


class FeatureScaling(nn.Module):
    """Signed square root, then zero mean and unit variance: what makes linear heads work.

    Args:
        width: Number of features D.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def forward(self, features: Tensor) -> Tensor:
        """Scale (B, D) features."""
        return (signed_root(features) - self.mean) * self.scale


def signed_root(features: Tensor) -> Tensor:
    """Give sign(x) sqrt(|x|), which tames the long tails of pooled activations."""
    return features.sign() * features.abs().sqrt()
