from collections.abc import Callable

import pytest
import torch

from labelclean.losses import LOSSES, RobustLoss, build

MakeLoss = Callable[..., RobustLoss]


def symmetric(classes: int, rate: float = 0.4) -> torch.Tensor:
    matrix = torch.full((classes, classes), rate / (classes - 1), dtype=torch.float64)
    return matrix.fill_diagonal_(1 - rate)


@pytest.fixture
def make_loss() -> MakeLoss:
    """Build any loss ready for use: T where it takes one, bound to its data."""

    def make(name: str, classes: int = 5, samples: int = 16, **params: object) -> RobustLoss:
        if "T" not in params and LOSSES.parameters(name).get("T", 0) is None:
            params["T"] = symmetric(classes)
        loss = build(name, **params)
        loss.bind(samples, classes, epochs=10)
        return loss

    return make
