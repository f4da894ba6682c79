"""Losses corrected by a noise transition matrix T: forward, backward, and one that learns it."""

from typing import Any

import torch
from torch import Tensor, nn

from labelclean.catalogue import unknown_name
from labelclean.errors import ConfigError, DataError
from labelclean.losses.base import RobustLoss
from labelclean.losses.checks import structure, transition
from labelclean.losses.margin import by_blocks, log_total, soft_cross_entropy, with_gradient
from labelclean.losses.transition import ESTIMATORS

_FLOOR = 1e-3
_FORBIDDEN = -1e4
"""A score whose softmax is exactly 0, and whose logarithm is still a number."""
_LARGEST_CONDITION = 1e6


def mixed_cross_entropy(logits: Tensor, labels: Tensor, log_T: Tensor) -> Tensor:
    """Give (B,) -log sum_i p_i T_iy, with gradients by the logits and by log T.

    With r the posterior of the true class, r_i = p_i T_iy / (pT)_y, the gradient by the logits is
    p - r and by log T_iy it is -r.

    Args:
        logits: (B, C).
        labels: (B,) int64.
        log_T: (C, C), rows by true class.
    """
    table = log_T.T.contiguous()
    learned = table.requires_grad

    def rowwise(logits: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        mixed = table.index_select(0, labels).add_(logits)
        p, r = torch.softmax(logits, dim=1), torch.softmax(mixed, dim=1)
        values = log_total(logits, p) - log_total(mixed, r)
        rows = p.sub_(r)
        return (values, rows, r.neg_()) if learned else (values, rows)

    with torch.no_grad():
        values, *gradients = by_blocks(rowwise, logits, labels)
    sources = [(logits, None), (table, labels)][: len(gradients)]
    parts = [(rows, *source) for rows, source in zip(gradients, sources, strict=True)]
    return with_gradient(values, *parts)


class CorrectedLoss(RobustLoss):
    """What the three share: T, given by the user or estimated once from the warm-up model.

    Args:
        T: (C, C) matrix of P(given = j | true = i), rows sum to 1; or "confident_joint", "anchor"
            or "percentile" to estimate it from the warm-up model; None is "confident_joint".
    """

    memory_shape = "C x C"

    def __init__(self, T: Any = None) -> None:
        super().__init__()
        self.matrix: Tensor | None
        self.known: Tensor
        self.register_buffer("matrix", None)
        self.register_buffer("known", torch.tensor(False))
        self.method: str | None = None
        if T is None or isinstance(T, str):
            self.method = T or "confident_joint"
            if self.method not in ESTIMATORS:
                raise unknown_name("transition estimator", self.method, ESTIMATORS)
            # The papers train CCE to the end and then again with T; half and half is our choice.
            self.warmup_loss, self.warmup_fraction = "cce", 0.5
        else:
            given = transition("T", T)
            self.allocate(len(given))
            self.learn(given)

    def allocate(self, num_classes: int) -> None:
        """Make room for a matrix that is not known yet."""
        self.matrix = torch.eye(num_classes, dtype=torch.float64, device=self.known.device)
        self.known.fill_(False)

    def learn(self, T: Tensor) -> None:
        """Take a (C, C) matrix."""
        if self.matrix is None or self.matrix.shape != T.shape:
            raise ConfigError(f"T has shape {tuple(T.shape)}; bind(..., {len(T)}) comes first.")
        self.matrix.copy_(T)
        self.known.fill_(True)

    def current(self) -> Tensor:
        """Give the (C, C) matrix in use."""
        if self.matrix is None or not self.known:
            raise ConfigError(
                "the transition matrix is not known yet: give T, or call "
                "bind(num_samples, num_classes) and receive_probabilities(probs, labels) first."
            )
        return self.matrix

    def fitting(self, logits: Tensor) -> Tensor:
        """Give the matrix in use, or refuse logits of another number of classes."""
        T = self.current()
        if len(T) != logits.shape[1]:
            raise DataError(f"logits have {logits.shape[1]} classes, T has {len(T)}.")
        return T

    def bind(self, num_samples: int, num_classes: int, epochs: int | None = None) -> None:
        """Allocate the matrix, or check that the given one fits."""
        super().bind(num_samples, num_classes, epochs)
        if self.method is not None:
            self.allocate(num_classes)
        elif len(self.current()) != num_classes:
            raise ConfigError(
                f"T is for {len(self.current())} classes, but the data has {num_classes}."
            )

    def wants_probabilities(self, epoch: int) -> bool:
        """Say whether the matrix is still to be estimated."""
        return not bool(self.known)

    def receive_probabilities(self, probs: Tensor, labels: Tensor) -> None:
        """Estimate the matrix, if none was given."""
        if self.method is not None:
            self.learn(ESTIMATORS[self.method](probs, labels))


class Forward(CorrectedLoss):
    """Forward correction: the prediction passes through the noise before it meets the label.

    L = -log (pT)_y, gradient p_j (1 - T_jy / (pT)_y). Predict with p, never with pT.

    Paper: Patrini et al., "Making Deep Neural Networks Robust to Label Noise: a Loss Correction
    Approach", 2017. They estimate T from anchors of a full CCE run; half of the epochs and the
    confident joint are our defaults.
    """

    paper = "Patrini et al., a Loss Correction Approach, 2017"
    formula = "L = -log sum_i p_i T_iy"

    def learn(self, T: Tensor) -> None:
        """Take a (C, C) matrix; without a zero in it the loss has an upper bound."""
        super().learn(T)
        self.bounded = bool(T.min() > 0)

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give -log (pT)_y."""
        log_T = self.fitting(logits).to(logits.dtype).log()
        return mixed_cross_entropy(logits, labels, log_T)


class Backward(CorrectedLoss):
    """Backward correction: the losses of all labels, mixed by the inverse of the noise.

    L = sum_c (T^-1)_yc (-log p_c), gradient p - (T^-1)_y. Unbiased, but it can be negative and is
    unbounded below; it needs a well-conditioned T.

    Paper: Patrini et al., "Making Deep Neural Networks Robust to Label Noise: a Loss Correction
    Approach", 2017.
    """

    paper = "Patrini et al., a Loss Correction Approach, 2017"
    formula = "L = -sum_c (T^-1)_yc log p_c"

    def allocate(self, num_classes: int) -> None:
        """Make room for the matrix and its inverse."""
        super().allocate(num_classes)
        self.register_buffer("inverse", torch.empty_like(self.matrix))  # type: ignore[arg-type]
        self.inverse: Tensor

    def learn(self, T: Tensor) -> None:
        """Take a (C, C) matrix and invert it, or refuse one that cannot be inverted safely."""
        condition = float(torch.linalg.cond(T))
        if not condition <= _LARGEST_CONDITION:
            raise ConfigError(
                f"T has condition number {condition:.3g}; backward correction inverts it and "
                f"allows at most {_LARGEST_CONDITION:g}. Use the loss 'forward' with this T."
            )
        super().learn(T)
        self.inverse.copy_(torch.linalg.inv(T))

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give the mixture of all labels' losses."""
        self.fitting(logits)
        return soft_cross_entropy(logits, self.inverse.to(logits.dtype)[labels])


class Adaptation(CorrectedLoss):
    """Noise adaptation layer: forward correction whose matrix is learned with the model.

    T = row-softmax(A), L = -log (pT)_y. It needs a good start, since T = I keeps it at CCE, and a
    larger step for A than for the head, without weight decay: see `step_scale`.

    Args:
        T: Where A starts; see `CorrectedLoss`.
        mask: (C, C) of 0 and 1, which confusions are possible (row: true, column: given), as a
            person who knows the classes says; the diagonal always is. What it forbids stays
            exactly 0. None: all are possible.

    Paper: Goldberger and Ben-Reuven, "Training Deep Neural-Networks Using a Noise Adaptation
    Layer", 2017. Started from the confident joint, entries of at least 0.001. The mask is what
    Han et al., "Masking: A New Perspective of Noisy Supervision", 2018, aim at with a generator
    and a critic, without them.
    """

    paper = "Goldberger & Ben-Reuven, a Noise Adaptation Layer, 2017"
    formula = "L = -log sum_i p_i T_iy,  T = row-softmax(A) learned"
    step_scale = 5.0

    allowed: Tensor | None

    def __init__(self, T: Any = None, mask: Any = None) -> None:
        super().__init__(T)
        allowed = None if mask is None else structure("mask", mask)
        self.register_buffer("allowed", allowed, persistent=False)
        if allowed is not None and self.matrix is not None and len(self.matrix) != len(allowed):
            raise ConfigError(
                f"mask is for {len(allowed)} classes and T for {len(self.matrix)}; give both for "
                "the classes of the data, in their order."
            )

    def bind(self, num_samples: int, num_classes: int, epochs: int | None = None) -> None:
        """Allocate the matrix, or check that what was given fits."""
        if self.allowed is not None and len(self.allowed) != num_classes:
            raise ConfigError(
                f"mask is for {len(self.allowed)} classes, but the data has {num_classes}; give a "
                "row and a column for each class, in the order of the classes."
            )
        super().bind(num_samples, num_classes, epochs)

    def allocate(self, num_classes: int) -> None:
        """Make room for the matrix that starts the scores A, and for the scores."""
        super().allocate(num_classes)
        self.scores = nn.Parameter(torch.zeros(num_classes, num_classes, device=self.known.device))

    def learn(self, T: Tensor) -> None:
        """Start the scores at log T."""
        super().learn(T)
        with torch.no_grad():
            self.scores.copy_(T.clamp(min=_FLOOR).log())

    def current(self) -> Tensor:
        """Give the (C, C) matrix as learned so far."""
        super().current()
        return torch.softmax(self._masked().detach(), dim=1)

    def _masked(self) -> Tensor:
        if self.allowed is None:
            return self.scores
        return self.scores.masked_fill(~self.allowed, _FORBIDDEN)

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Give -log (pT)_y, with gradients for the logits and for A."""
        self.fitting(logits)
        log_T = torch.log_softmax(self._masked().to(logits.dtype), dim=1)
        return mixed_cross_entropy(logits, labels, log_T)
