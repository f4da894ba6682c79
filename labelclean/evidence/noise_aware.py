"""Linear heads that know the noise: trained together on features, out of fold and in sample.

Each head minimises the generalised cross entropy of the *forward-corrected* probability,
(1 - Q^q) / q with Q = sum_c p_c T[c, given]; T is estimated again after every epoch from the
probabilities of the held-out folds, so that what a head has memorised cannot feed it.
Not through the common loop: six heads one by one take 8.1 s there, here 4.9 (10,000 x 1,280), and
it orders the rows otherwise.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labelclean.arrays import Floats, Ints
from labelclean.calibration.constants import judge_constants
from labelclean.evidence.folds import enough_rows, some_rows
from labelclean.options import OnProgress, silent
from labelclean.training.settings import head_batch_size

EstimateTransition = Callable[[Ints, Floats, Floats], Floats]
"""(rows (n,), their out-of-fold probabilities (n, C), transition (C, C)) -> a better one (C, C)."""


@dataclass(frozen=True, slots=True)
class NoiseAwareSettings:
    """How the heads are trained; the defaults suit a backbone's features.

    Args:
        q: Exponent of the generalised cross entropy.
        epochs: Passes over the data; over a part of very many rows, each time the next one.
        lr: Largest learning rate; it falls to zero along a cosine.
        weight_decay: Decoupled weight decay. Strong on purpose: it matters as much as the loss.
        trusted: Diagonal of the first transition matrix.
        first_estimate: Epoch after which the transition matrix is estimated, counted from 0.
    """

    q: float = field(default_factory=lambda: judge_constants().head_q)
    epochs: int = field(default_factory=lambda: judge_constants().head_epochs)
    lr: float = field(default_factory=lambda: judge_constants().head_lr)
    weight_decay: float = field(default_factory=lambda: judge_constants().head_weight_decay)
    trusted: float = field(default_factory=lambda: judge_constants().head_trusted)
    first_estimate: int = field(default_factory=lambda: judge_constants().head_first_estimate)


@dataclass(frozen=True, slots=True)
class HeadPosteriors:
    """What the heads say.

    Args:
        out_of_fold: (N, C) probabilities of the head that did not see the row.
        in_sample: (N, C) probabilities of the head that saw every row.
        transition: (C, C) P(given | true), rows sum to one.
    """

    out_of_fold: Floats
    in_sample: Floats
    transition: Floats


def train_noise_aware_heads(  # noqa: PLR0913 (who watches is apart from what is needed)
    features: NDArray[np.float32],
    label: NDArray[np.int64],
    weight: NDArray[np.float32],
    fold: NDArray[np.int64],
    num_classes: int,
    estimate: EstimateTransition,
    *,
    seed: int,
    settings: NoiseAwareSettings | None = None,
    on_progress: OnProgress = silent,
) -> HeadPosteriors:
    """Train one head per fold that leaves it out, and one that sees all rows, in one pass.

    Args:
        features: (N, D) standardised features.
        label: (N,) given labels.
        weight: (N,) how much a row counts.
        fold: (N,) 0 ... K-1.
        num_classes: C.
        estimate: Improves the transition matrix from held-out probabilities.
        seed: Seed of the order of the rows.
        settings: How to train; None: the defaults.
        on_progress: Told how many rows were seen, of all epochs.
    """
    how = settings or NoiseAwareSettings()
    rows, targets = torch.from_numpy(features), torch.from_numpy(label)
    folds = int(fold.max()) + 1
    count, width = features.shape
    seen = torch.from_numpy(weight)[:, None].repeat(1, folds + 1)
    seen[torch.arange(count), torch.from_numpy(fold)] = 0
    slope = torch.zeros(width, (folds + 1) * num_classes, requires_grad=True)
    bias = torch.zeros((folds + 1) * num_classes, requires_grad=True)
    groups: list[dict[str, Any]] = [
        {"params": [slope], "weight_decay": how.weight_decay},
        {"params": [bias], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=how.lr)
    generator = torch.Generator().manual_seed(seed)
    batch = head_batch_size(count, whole=int)
    most = enough_rows(num_classes)
    asked = some_rows(count, most)
    parts = -(-count // most)
    steps = how.epochs * -(-count // (parts * batch))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: 0.5 * (1 + np.cos(np.pi * min(step / steps, 1.0)))
    )
    transition = _diagonal(num_classes, how.trusted)
    for epoch, order in zip(range(how.epochs), _turns(count, parts, generator), strict=False):
        columns = torch.from_numpy(transition.T.astype(np.float32))
        for index in torch.split(order, batch):
            probs = _probabilities(rows[index], slope, bias, num_classes)
            given = (probs * columns[targets[index]][:, None, :]).sum(-1).clamp_min(1e-12)
            losses = (1 - given.pow(how.q)) / how.q * seen[index]
            # Every head averages over the rows it may see; the heads share nothing but the pass.
            loss = (losses.sum(0) / seen[index].sum(0).clamp_min(1e-6)).sum()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        if epoch >= how.first_estimate:
            held_out = _posteriors(rows, slope, bias, num_classes, fold, asked)
            transition = estimate(asked, held_out, transition)
        on_progress((epoch + 1) * len(order), how.epochs * len(order))
    every = np.arange(count)
    held_out = _posteriors(rows, slope, bias, num_classes, fold, every)
    last = np.full(count, folds)
    everything = _posteriors(rows, slope, bias, num_classes, last, every)
    return HeadPosteriors(held_out, everything, transition)


def _turns(count: int, parts: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Give rows for one epoch after the other: all in a new order, or the next part of an order."""
    while True:
        yield from torch.randperm(count, generator=generator).tensor_split(parts)


def _diagonal(size: int, trusted: float) -> Floats:
    matrix = np.full((size, size), (1 - trusted) / max(size - 1, 1))
    np.fill_diagonal(matrix, trusted)
    return matrix


def _probabilities(
    rows: torch.Tensor, slope: torch.Tensor, bias: torch.Tensor, num_classes: int
) -> torch.Tensor:
    logits = torch.addmm(bias, rows, slope)
    return torch.softmax(logits.view(len(rows), -1, num_classes), dim=-1)


def _posteriors(
    rows: torch.Tensor,
    slope: torch.Tensor,
    bias: torch.Tensor,
    num_classes: int,
    head: Ints,
    asked: Ints,
) -> Floats:
    """(n, C) what head number `head[i]` says about each row i asked for."""
    # In blocks: the answers of all heads at once would hold (K + 1) times N times C numbers.
    found = np.empty((len(asked), num_classes))
    with torch.no_grad():
        for begin in range(0, len(asked), 8192):
            part = torch.from_numpy(asked[begin : begin + 8192])
            probs = _probabilities(rows[part], slope, bias, num_classes)
            own = torch.from_numpy(head)[part]
            found[begin : begin + 8192] = probs[torch.arange(len(probs)), own].numpy()
    return found
