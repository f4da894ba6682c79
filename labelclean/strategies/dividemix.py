"""DivideMix: a mixture on the other network's losses splits the rows; half of them lose labels."""

import warnings

import numpy as np
import torch
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from torch import Tensor

from labelclean.losses.checks import number, whole
from labelclean.strategies.base import (
    ROW_INPUTS,
    ROW_TARGETS,
    ROW_WEIGHTS,
    EpochPlan,
    Feed,
    Setting,
    Step,
    Strategy,
    Sweep,
    Turn,
    Verdict,
    draw_mixture,
    given_label_loss,
    one_hot,
)
from labelclean.strategies.co_teaching import needs_depth
from labelclean.strategies.mixup import mixed

_FEWEST = 2
_TINY = 1e-12


class DivideMix(Strategy):
    """Split rows by the other network's losses; labels of the clean part are trusted, others lost.

    Each epoch two Gaussians on a network's scaled losses give w = P(clean) of every row; the other
    network takes rows with w > tau as labelled, the rest as unlabelled, and trains MixMatch:
    targets w e_y + (1 - w) p and mean predictions, both sharpened, all mixed with one another;
    L = L_x + lambda L_u + KL(prior || mean p). lambda rises over `ramp` epochs.

    Args:
        lambda_u: Weight of the unlabelled rows, 0 or more; see the advice, 25 costs much where
            there is little noise.
        warmup: Epochs of plain training first; None: a tenth of them, at least 1.
        tau: Least probability of a clean label.
        temperature: Of sharpening, above 0.
        alpha: Of the mixing weights, above 0.
        confidence: Weight of + sum p log p in the warm-up; 1 for asymmetric noise.
        ramp: Epochs in which lambda rises.

    Paper: Li et al., "DivideMix: Learning with Noisy Labels as Semi-supervised Learning", 2020.
    Predictions for targets are made in evaluation mode. L_u averages over classes as in the code
    (the paper sums). An epoch with no clean or no other rows trains as in the warm-up. Features
    have no random views, so their two views are alike. The first network is the result; the paper
    adds the logits of both.
    """

    paper = "Li et al., DivideMix, 2020"
    formula = "w = P(clean | loss of the other network);  L = L_x + lambda L_u + KL(prior || mean)"
    advice = (
        ("CIFAR-10, 20 % or asymmetric 40 %", "lambda_u=0"),
        ("CIFAR-10, 50 to 80 %", "lambda_u=25"),
        ("CIFAR-10, 90 %", "lambda_u=50, tau=0.6"),
        ("CIFAR-100, 20 %", "lambda_u=25"),
        ("CIFAR-100, 50 to 90 %", "lambda_u=150"),
        ("asymmetric noise, Clothing1M", "confidence=1"),
    )
    changes = frozenset({ROW_WEIGHTS, ROW_TARGETS, ROW_INPUTS})
    networks = 2
    views = 2
    memory_shape = "2 N"
    cost = 8.0

    def __init__(
        self,
        lambda_u: float = 0.0,
        warmup: int | None = None,
        tau: float = 0.5,
        temperature: float = 0.5,
        alpha: float = 4.0,
        confidence: float = 0.0,
        ramp: float = 16.0,
    ) -> None:
        super().__init__()
        self.lambda_u = number("lambda_u", lambda_u, 0)
        self.warmup = warmup if warmup is None else whole("warmup", warmup, 1)
        self.tau = number("tau", tau, 0, 1, open_low=True, open_high=True)
        self.temperature = number("temperature", temperature, 0, open_low=True)
        self.alpha = number("alpha", alpha, 0, open_low=True)
        self.confidence = number("confidence", confidence, 0)
        self.ramp = number("ramp", ramp, 0, open_low=True)
        self.clean = torch.zeros(0)

    def unfit(self, setting: Setting) -> str | None:
        """Refuse two convex problems."""
        return needs_depth(setting, "two networks must come to differ")

    @property
    def warm(self) -> int:
        """How many epochs of warm-up there are."""
        return max(1, self.epochs // 10) if self.warmup is None else self.warmup

    def start_epoch(self, epoch: int, sweep: Sweep, generator: np.random.Generator) -> EpochPlan:
        """Split the rows for each network by what the other one says."""
        self.epoch = epoch
        everyone = torch.arange(len(self.labels))
        if epoch < self.warm:
            return EpochPlan((Turn((0, 1), (everyone,)),))
        losses = [given_label_loss(sweep(k, "logits", everyone), self.labels) for k in (0, 1)]
        self.clean = torch.stack([clean_probability(each) for each in losses])
        turns = []
        for network in (0, 1):
            trusted = (self.clean[1 - network] > self.tau).cpu()
            parts = everyone[trusted], everyone[~trusted]
            both = min(len(part) for part in parts) >= _FEWEST
            turns.append(Turn((network,), parts if both else (everyone,)))
        return EpochPlan(tuple(turns))

    def feed(self, groups: tuple[Tensor, ...], generator: np.random.Generator) -> Feed:
        """Show two views of every row, all mixed with one another."""
        if len(groups) == 1:
            return super().feed(groups, generator)
        labelled, others = groups
        rows = torch.cat([labelled, labelled, others, others])
        views = [torch.full_like(part, v) for part in groups for v in (0, 1)]
        share, partner = draw_mixture(len(rows), self.alpha, generator)
        first = 2 * len(labelled)
        return Feed(rows, torch.cat(views), partner, max(share, 1 - share), first)

    def judge(self, logits: Tensor, step: Step) -> Verdict:
        """Train on refined and guessed targets."""
        if step.feed.first is None:
            if not self.confidence:
                return Verdict()
            certainty = torch.stack([_certainty(each) for each in logits]).sum()
            return Verdict(penalty=self.confidence * certainty)
        me = step.networks[0]
        said = [torch.softmax(step.ask(k, False), dim=1) for k in (me, 1 - me)]
        weight = self.clean[1 - me][step.feed.rows].to(logits.dtype)
        targets = mixed(self.aims(said[0], said[1], weight, step), step.feed)
        count = step.feed.first
        p = torch.softmax(logits[0], dim=1)
        others = (p[count:] - targets[count:]).square().mean()
        prior = 1 / p.shape[1]
        spread = (prior * (prior / p.mean(dim=0).clamp(min=_TINY)).log()).sum()
        rise = min(max((step.epochs_done - self.warm) / self.ramp, 0.0), 1.0)
        counts = (torch.arange(len(p), device=p.device) < count).to(p.dtype)
        penalty = self.lambda_u * rise * others + spread
        return Verdict(targets[None], counts[None], float(count), penalty)

    def aims(self, own: Tensor, peer: Tensor, weight: Tensor, step: Step) -> Tensor:
        """Give (M, C) targets before mixing: refined for labelled rows, guessed for the others."""
        count = step.feed.first or 0
        own = both_views(own, count)
        given = one_hot(step.labels, own.shape[1], own)
        refined = weight[:, None] * given + (1 - weight[:, None]) * own
        guessed = (own + both_views(peer, count)) / 2
        targets = torch.cat([refined[:count], guessed[count:]])
        return sharpened(targets, self.temperature)


def both_views(p: Tensor, first: int) -> Tensor:
    """Replace the predictions of the two views of every row by their mean."""
    parts = [part.view(2, -1, p.shape[1]).mean(dim=0) for part in (p[:first], p[first:])]
    return torch.cat([parts[0], parts[0], parts[1], parts[1]])


def sharpened(p: Tensor, temperature: float) -> Tensor:
    """Give p^(1/T), normalised."""
    powered = p ** (1 / temperature)
    return powered / powered.sum(dim=1, keepdim=True)


def clean_probability(losses: Tensor) -> Tensor:
    """Give the (N,) posterior of the mixture's component of small losses."""
    values = losses.double().cpu().numpy()
    spread = values.max() - values.min()
    if not spread > 0:
        return torch.ones_like(losses)
    scaled = ((values - values.min()) / spread)[:, None]
    model = GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(scaled)
    found = (model.weights_, model.means_.ravel(), model.covariances_.ravel())
    posterior = component_posterior(scaled.ravel(), *found)
    return torch.from_numpy(posterior).to(losses)


def component_posterior(
    values: np.ndarray, shares: np.ndarray, means: np.ndarray, variances: np.ndarray
) -> np.ndarray:
    """Give the (N,) posterior of the component with the smaller mean."""
    distance = (values[:, None] - means) ** 2 / variances
    density = np.log(shares) - 0.5 * (np.log(variances) + distance)
    low = int(np.argmin(means))
    return np.asarray(expit(density[:, low] - density[:, 1 - low]))


def _certainty(logits: Tensor) -> Tensor:
    log_p = torch.log_softmax(logits, dim=1)
    return (log_p.exp() * log_p).sum(dim=1).mean()
