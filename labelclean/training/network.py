"""The network that a mode trains: a head on features, or a backbone with a head on top."""

from torch import nn

from labelclean.models.backbones import Backbone
from labelclean.models.classifier import PictureClassifier, feature_width
from labelclean.models.head import HIDDEN_BEHIND_ATTENTION, Head
from labelclean.models.settings import ModelSettings
from labelclean.training.settings import TrainSettings


def head_of_features(width: int, classes: int, model: ModelSettings, attention: bool) -> Head:
    """Build a head on (B, width) features.

    Args:
        width: D.
        classes: C.
        model: The [model] settings.
        attention: Whether the loss needs attention logits.
    """
    hidden = model.hidden
    if hidden is None:
        hidden = HIDDEN_BEHIND_ATTENTION if attention else 0
    return Head(width, classes, hidden=hidden, attention=attention, dropout=model.dropout)


def whole_network(
    backbone: Backbone,
    classes: int,
    model: ModelSettings,
    training: TrainSettings,
    attention: bool,
    *,
    peer: bool = False,
) -> PictureClassifier:
    """Build a classifier of pictures out of a backbone, which becomes part of it.

    Args:
        backbone: The network below.
        classes: C.
        model: The [model] settings.
        training: Resolved settings.
        attention: Whether the loss needs attention logits.
        peer: Whether it learns beside another one and must begin elsewhere.
    """
    head = Head(
        feature_width(backbone),
        classes,
        hidden=model.hidden or 0,
        attention=attention,
        dropout=model.dropout,
    )
    if training.mode == "finetune" and not peer:
        # Nothing random on top of what is pretrained: all classes begin alike.
        nn.init.zeros_(head.classifier.weight)
        nn.init.zeros_(head.classifier.bias)
    return PictureClassifier(backbone, head, training.frozen_stages)
