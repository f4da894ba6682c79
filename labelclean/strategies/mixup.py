"""mixup: train between rows, so that no single wrong label can be learnt by heart."""

import numpy as np
import torch
from torch import Tensor

from labelclean.losses.checks import number
from labelclean.strategies.base import (
    ROW_INPUTS,
    ROW_TARGETS,
    Feed,
    Step,
    Strategy,
    Verdict,
    draw_mixture,
    one_hot,
)


class Mixup(Strategy):
    """Train on convex pairs of inputs and labels, which makes wrong labels hard to memorise.

    b ~ Beta(alpha, alpha) and one permutation a batch; x = b x_i + (1 - b) x_j;
    L = b L(z, y_i) + (1 - b) L(z, y_j).

    Args:
        alpha: Above 0; 1 without noise. 8 to 32 are in use under noise; larger means more mixing.

    Paper: Zhang et al., "mixup: Beyond Empirical Risk Minimization", 2018. The share is not
    folded to at least one half, as in the authors' code. Mixed pictures are rounded to whole grey
    levels. What is said about rows comes from a pass over unmixed rows after every epoch.
    """

    paper = "Zhang et al., mixup: Beyond Empirical Risk Minimization, 2018"
    formula = "x = b x_i + (1-b) x_j,  L = b L(z,y_i) + (1-b) L(z,y_j)"
    advice = (("CIFAR, clean", "alpha=1"), ("label noise", "alpha=8 to 32"))
    changes = frozenset({ROW_INPUTS, ROW_TARGETS})

    def __init__(self, alpha: float = 8.0) -> None:
        super().__init__()
        self.alpha = number("alpha", alpha, 0, open_low=True)

    def feed(self, groups: tuple[Tensor, ...], generator: np.random.Generator) -> Feed:
        """Mix every row with another one of the batch."""
        rows = groups[0]
        share, partner = draw_mixture(len(rows), self.alpha, generator)
        return Feed(rows, torch.zeros_like(rows), partner, share)

    def judge(self, logits: Tensor, step: Step) -> Verdict:
        """Mix the labels alike."""
        own = one_hot(step.labels, self.num_classes, logits)
        return Verdict(targets=mixed(own, step.feed)[None])


def mixed(values: Tensor, feed: Feed) -> Tensor:
    """Mix (M, ...) values as the inputs of a feed are mixed."""
    if feed.partner is None:
        return values
    return feed.share * values + (1 - feed.share) * values[feed.partner]
