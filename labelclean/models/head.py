"""Heads: classifiers on features and what features go through first; no pictures, no timm."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

HIDDEN_BEHIND_ATTENTION = 256
"""Units of the hidden layer without which an attention head cannot tell rows apart."""


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
        dropout: Share of what the classifier sees that is left out while training.
    """

    def __init__(
        self, width: int, num_classes: int, *, hidden: int, attention: bool, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dropout = dropout
        layers = (nn.Linear(width, hidden), nn.ReLU()) if hidden else ()
        self.body = nn.Sequential(*layers)
        self.classifier = nn.Linear(hidden or width, num_classes)
        self.attention = nn.Linear(hidden or width, 1) if attention else None

    def forward(self, features: Tensor) -> Answer:
        """Answer (B, D) features."""
        body = self.body(features)
        if self.dropout:
            body = nn.functional.dropout(body, self.dropout, self.training)
        attention = None if self.attention is None else self.attention(body).squeeze(1)
        return Answer(self.classifier(body), attention)


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
