"""Optimisers: which parameter moves how."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from labelclean.losses import RobustLoss
from labelclean.training.schedule import rate_factor
from labelclean.training.settings import TrainSettings

_SCALE = "rate_scale"


def build_optimizer(
    models: Sequence[nn.Module], loss: RobustLoss, settings: TrainSettings
) -> torch.optim.Optimizer:
    """Build the optimiser of the networks that learn and of the parameters their loss may have.

    Args:
        models: Weights decay; biases and norms, which have one dimension, do not. The classifier
            on top of a network takes steps `head_rate` times as large.
        loss: Its own parameters never decay and take steps `step_scale` times as large.
        settings: Resolved settings.
    """
    decay, faster = settings.weight_decay or 0.0, settings.head_rate or 1.0
    groups: list[dict[str, Any]] = []
    for model in models:
        head = getattr(model, "head", None)
        above = set() if head is None else set(head.parameters())
        for scale, chosen in ((1.0, set(model.parameters()) - above), (faster, above)):
            moving = [p for p in model.parameters() if p in chosen and p.requires_grad]
            groups += [
                {"params": [p for p in moving if p.ndim > 1], "weight_decay": decay, _SCALE: scale},
                {"params": [p for p in moving if p.ndim <= 1], "weight_decay": 0.0, _SCALE: scale},
            ]
    own = list(loss.parameters())
    groups.append({"params": own, "weight_decay": 0.0, _SCALE: loss.step_scale})
    groups = [group for group in groups if group["params"]]
    rate = settings.learning_rate or 0.0
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=rate, momentum=settings.momentum)
    return torch.optim.AdamW(groups, lr=rate)


def set_rate(
    optimizer: torch.optim.Optimizer, settings: TrainSettings, progress: float | None
) -> None:
    """Set the rate of every group for this point of the schedule; None: the starting rate."""
    factor = 1.0 if progress is None else rate_factor(settings, progress)
    rate = (settings.learning_rate or 0.0) * factor
    for group in optimizer.param_groups:
        group["lr"] = rate * group[_SCALE]
