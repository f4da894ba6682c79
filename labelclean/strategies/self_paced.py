"""Self-paced learning and MentorNet's predefined curriculum: only rows of small loss count."""

import math
from typing import ClassVar

import torch
from torch import Tensor

from labelclean.losses.checks import number
from labelclean.strategies.base import ROW_WEIGHTS, Step, Strategy, Verdict, given_label_loss


def nearest_rank(values: Tensor, share: float) -> Tensor:
    """Give the value below which about `share` of (B,) values lie, always one of them."""
    place = round(share * (len(values) - 1))
    return values.sort().values[place]


class SelfPaced(Strategy):
    """Train only rows whose loss lies under a threshold that follows the model.

    The threshold is a running mean of a percentile of the batch's losses; what lies above it
    waits. Under noise the share that counts must not rise to all: wrong labels come in last.
    q = percentile(l, share); lambda <- decay lambda + (1 - decay) q, from 0; v = 1[l <= lambda];
    step on sum v l / B.

    Args:
        share: Percentile of the losses, in (0, 1]; the share of labels believed to be right.
        decay: How much of the threshold stays in a step.

    Paper: Kumar et al., "Self-Paced Learning for Latent Variable Models", 2010, in the form that
    MentorNet compares itself with (Jiang et al., 2018). Their 0.7 for every noise rate is our
    default too. The step is divided by the whole batch, as there, so it is shorter the fewer rows
    count. The authors scale their weight decay likewise; we do not.
    """

    paper = "Kumar et al., Self-Paced Learning, 2010; as in Jiang et al., MentorNet, 2018"
    formula = "v = 1[l <= lambda],  lambda <- d lambda + (1 - d) percentile(l)"
    advice: ClassVar[tuple[tuple[str, str], ...]] = (
        ("any noise rate (the authors' runs)", "share=0.7, decay=0.5"),
    )
    changes = frozenset({ROW_WEIGHTS})
    memory_shape = "1"

    threshold: Tensor

    def __init__(self, share: float = 0.7, decay: float = 0.5) -> None:
        super().__init__()
        self.share = number("share", share, 0, 1, open_low=True)
        self.decay = number("decay", decay, 0, 1, open_high=True)
        self.register_buffer("threshold", torch.zeros((), dtype=torch.float64))

    def judge(self, logits: Tensor, step: Step) -> Verdict:
        """Let rows count by their loss."""
        losses = given_label_loss(logits[0], step.labels)
        self.threshold.lerp_(nearest_rank(losses, self.share).double(), 1 - self.decay)
        return Verdict(weights=self.weigh(losses, step)[None])

    def weigh(self, losses: Tensor, step: Step) -> Tensor:
        """Give the (M,) weights of (M,) losses."""
        return (losses <= self.threshold).to(losses.dtype)


class MentornetPd(SelfPaced):
    """Self-paced learning by MentorNet's predefined curriculum: all, then easy rows, then graded.

    The closed form that the mentor network is fitted to, without the network. By progress c in
    percent: c <= burn_in: v = 1; up to `graded`: v = 1[l <= lambda]; from then on
    v = clip(1 - (l - lambda) / lambda2, 0, 1) with lambda2 = 1. Beside it rows are left out at
    random (example dropout): at a rate of `dropout` in the first 17 %, of 0.05 after.

    Args:
        share: Percentile of the losses that moves the threshold; the paper's runs: 0.75 for 20
            and 40 % of noise, 0.5 for 80 %.
        decay: How much of the threshold stays in a step.
        burn_in: Percent of the training in which all rows count.
        graded: Percent of the training from which weights are graded.
        dropout: Share of rows left out at first; 0: none, then or later.

    Paper: Jiang et al., "MentorNet: Learning Data-Driven Curriculum for Very Deep Neural Networks
    on Corrupted Labels", 2018. The data-driven variant (DD) needs labels known to be right and is
    not offered.
    """

    paper = "Jiang et al., MentorNet, 2018"
    formula = "v = 1, then 1[l <= lambda], then clip(1 - (l - lambda), 0, 1)"
    advice = (("20 and 40 % of noise", "share=0.75"), ("80 % of noise", "share=0.5"))

    def __init__(
        self,
        share: float = 0.75,
        decay: float = 0.5,
        burn_in: float = 18.0,
        graded: float = 90.0,
        dropout: float = 0.5,
    ) -> None:
        super().__init__(share, decay)
        self.burn_in = number("burn_in", burn_in, 0, 100)
        self.graded = number("graded", graded, 0, 100)
        self.dropout = number("dropout", dropout, 0, 1, open_high=True)

    def weigh(self, losses: Tensor, step: Step) -> Tensor:
        """Give the weights of the curriculum, with some rows left out at random."""
        percent = math.floor(100 * step.progress)
        if percent <= self.burn_in:
            weights = torch.ones_like(losses)
        elif percent < self.graded:
            weights = super().weigh(losses, step)
        else:
            weights = (1 - (losses - self.threshold)).clamp(0, 1).to(losses.dtype)
        rate = 0.0 if not self.dropout else self.dropout if percent < 17 else 0.05
        out = len(losses) - int(len(losses) * (1 - rate))
        if out:
            left_out = step.generator.permutation(len(losses))[:out]
            weights[torch.from_numpy(left_out).to(weights.device)] = 0
        return weights
