"""A network cut in two: the lower stages, which stay as they are, and the upper ones, trained."""

import torch
from torch import nn

from labelclean.errors import ConfigError
from labelclean.models.backbones import Backbone

_FAMILIES = (
    (("conv_stem", "bn1"), ("blocks",), ("conv_head", "bn2", "global_pool")),
    (("conv1", "bn1", "act1", "maxpool"), ("layer1", "layer2", "layer3", "layer4"),
     ("global_pool",)),
)  # fmt: skip
"""Stem, stages and end of the families that can be cut: EfficientNets and ResNets of timm."""


def split_network(backbone: Backbone, stages: int) -> tuple[nn.Sequential, nn.Sequential]:
    """Cut a network behind its stem and first stages; both parts share its weights.

    Args:
        backbone: The network.
        stages: How many stages belong to the lower part, at least 1.

    Raises:
        ConfigError: The network is of no family that can be cut, or has no such stage.
    """
    network = backbone.network
    remedy = "Set training.frozen_stages to 0 to train all of it."
    for names in _FAMILIES:
        if not all(hasattr(network, name) for part in names for name in part):
            continue
        stem, parts, end = ([getattr(network, name) for name in part] for part in names)
        body = list(parts[0]) if len(parts) == 1 else parts
        if stages >= len(body):
            raise ConfigError(
                f"training.frozen_stages is {stages}, and {backbone.name} has {len(body)} stages, "
                f"of which one must be trained. {remedy}"
            )
        lower = nn.Sequential(*stem, *body[:stages])
        upper = nn.Sequential(*body[stages:], *end)
        if _same(network, lower, upper, backbone.spec.size):
            return lower, upper
    raise ConfigError(
        f"training.frozen_stages is {stages}, and {backbone.name} is not built so that its lower "
        f"stages can be kept apart (EfficientNets and ResNets of timm are). {remedy}"
    )


def _same(network: nn.Module, lower: nn.Module, upper: nn.Module, size: int) -> bool:
    """Whether the two parts in a row are the network."""
    training = network.training
    network.eval()
    picture = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        whole, parts = network(picture).flatten(1), upper(lower(picture)).flatten(1)
    network.train(training)
    return whole.shape == parts.shape and torch.allclose(whole, parts, rtol=1e-4, atol=1e-5)
