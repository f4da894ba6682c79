"""Optimisers: which parameter moves how."""

import torch
from torch import nn

from labelclean.losses import RobustLoss
from labelclean.training.schedule import rate_factor
from labelclean.training.settings import TrainSettings

_SCALE = "rate_scale"


def build_optimizer(
    model: nn.Module, loss: RobustLoss, settings: TrainSettings
) -> torch.optim.Optimizer:
    """Build the optimiser of a model and of the parameters its loss may have.

    Args:
        model: Weights decay; biases and norms, which have one dimension, do not.
        loss: Its own parameters never decay and take steps `step_scale` times as large.
        settings: Resolved settings.
    """
    weights = [p for p in model.parameters() if p.requires_grad and p.ndim > 1]
    others = [p for p in model.parameters() if p.requires_grad and p.ndim <= 1]
    decay = settings.weight_decay or 0.0
    groups = [
        {"params": weights, "weight_decay": decay, _SCALE: 1.0},
        {"params": others, "weight_decay": 0.0, _SCALE: 1.0},
        {"params": list(loss.parameters()), "weight_decay": 0.0, _SCALE: loss.step_scale},
    ]
    groups = [group for group in groups if group["params"]]
    rate = settings.learning_rate or 0.0
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=rate, momentum=settings.momentum)
    return torch.optim.AdamW(groups, lr=rate)


def set_rate(optimizer: torch.optim.Optimizer, settings: TrainSettings, progress: float) -> None:
    """Set the rate of every group for this point of the training."""
    rate = (settings.learning_rate or 0.0) * rate_factor(settings, progress)
    for group in optimizer.param_groups:
        group["lr"] = rate * group[_SCALE]
