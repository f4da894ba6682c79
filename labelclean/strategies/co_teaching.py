"""Co-teaching: each of two networks chooses the rows that the other one trains on."""

import torch
from torch import Tensor

from labelclean.losses.checks import number, whole
from labelclean.strategies.base import (
    ROW_WEIGHTS,
    Setting,
    Step,
    Strategy,
    Verdict,
    given_label_loss,
)


def kept_count(rows: int, forget: float) -> int:
    """Give how many of `rows` stay when a share is forgotten; at least one."""
    return max(1, int((1 - forget) * rows + 1e-9))


def smallest(losses: Tensor, count: int) -> Tensor:
    """Give a (B,) 0/1 mask of the smallest losses; of equal ones the first."""
    mask = torch.zeros_like(losses)
    mask[torch.argsort(losses, stable=True)[:count]] = 1
    return mask


def needs_depth(setting: Setting, what: str) -> str | None:
    """Say why a strategy is of no use to a linear head."""
    if not setting.linear:
        return None
    return (
        f"{what}, and here a linear head is trained on features; give it a hidden layer "
        "(model.hidden=128), or train a whole network on pictures (--mode finetune or scratch)"
    )


class CoTeaching(Strategy):
    """Two networks choose small-loss rows for each other, so neither feeds on its own mistakes.

    Of a batch of B, n = (1 - f(e)) B rows with the smallest cross entropy of one network train the
    other; f rises from 0 to `forget` in the first `ramp` epochs. loss = mean over the n rows.

    Args:
        forget: Share of rows to leave out in the end: the noise rate, which the papers take as
            known; for asymmetric noise half of it.
        ramp: Epochs in which f rises; None: a twentieth of them, at least 1.

    Paper: Han et al., "Co-teaching: Robust Training of Deep Neural Networks with Extremely Noisy
    Labels", 2018 (ramp 10 of 200). Their code divides the mean by n once more; we do not. One of
    the two, the first, is the result.
    """

    paper = "Han et al., Co-teaching, 2018"
    formula = "each network trains on the (1 - f) B rows of smallest loss of the other"
    advice = (
        ("symmetric noise of rate r", "forget=r"),
        ("asymmetric noise of rate r", "forget=r/2"),
    )
    changes = frozenset({ROW_WEIGHTS})
    networks = 2
    cost = 2.0

    def __init__(self, forget: float = 0.2, ramp: int | None = None) -> None:
        super().__init__()
        self.forget = number("forget", forget, 0, 1, open_high=True)
        self.ramp = ramp if ramp is None else whole("ramp", ramp, 1)

    def unfit(self, setting: Setting) -> str | None:
        """Refuse two convex problems, which have one solution."""
        return needs_depth(setting, "two networks must come to differ")

    def rate(self, epoch: int) -> float:
        """Give f of a 0-based epoch."""
        ramp = self.ramp or max(1, self.epochs // 20)
        return self.forget * min(epoch / ramp, 1.0)

    def judge(self, logits: Tensor, step: Step) -> Verdict:
        """Let each network's easy rows count for the other."""
        losses = given_label_loss(logits, step.labels)
        count = kept_count(losses.shape[1], self.rate(self.epoch))
        mine, theirs = (smallest(line, count) for line in losses)
        return Verdict(weights=torch.stack([theirs, mine]), divisor=float(count))
