"""Learning rates as pure functions of progress."""

import math

from labelclean.training.settings import TrainSettings


def rate_factor(settings: TrainSettings, progress: float) -> float:
    """Give the share of the starting rate to use.

    Args:
        settings: Resolved settings.
        progress: Share of the training that is done, in [0, 1).
    """
    if settings.schedule == "constant":
        return 1.0
    if settings.schedule == "step":
        return settings.gamma ** sum(progress >= milestone for milestone in settings.milestones)
    if settings.schedule == "onecycle":
        return _one_cycle(progress)
    phase = progress
    if settings.schedule == "restarts":
        epochs = settings.epochs or 1
        phase = (progress * epochs / settings.cycle) % 1.0
    return settings.floor + (1 - settings.floor) * 0.5 * (1 + math.cos(math.pi * phase))


def _one_cycle(progress: float, warm: float = 0.3, start: float = 0.04) -> float:
    """Rise from a small rate along a cosine, then fall to zero along another (Smith, 2018)."""
    if progress < warm:
        return start + (1 - start) * 0.5 * (1 - math.cos(math.pi * progress / warm))
    return 0.5 * (1 + math.cos(math.pi * (progress - warm) / (1 - warm)))
