"""The doors of the losses: parameters and batches are checked here and trusted everywhere else."""

import math

import torch
from torch import Tensor

from labelclean.errors import ConfigError, DataError, shortlist

_ROW_SUM_TOLERANCE = 1e-3


def number(
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Give `value` as a float inside its range, or raise ConfigError that names both."""
    allowed = f"{low:g} {'<' if open_low else '<='} {name} {'<' if open_high else '<='} {high:g}"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"{name} is {value!r}; give a finite number with {allowed}.")
    below = value <= low if open_low else value < low
    above = value >= high if open_high else value > high
    if below or above:
        raise ConfigError(f"{name} is {value:g}, outside its range; allowed: {allowed}.")
    return float(value)


def whole(name: str, value: object, low: int) -> int:
    """Give `value` as a whole number not below `low`, or raise ConfigError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ConfigError(f"{name} is {value!r}; give a whole number, {low} or larger.")
    return value


def choice(name: str, value: object, known: tuple[str, ...]) -> str:
    """Give `value` if it is one of the known texts, or raise ConfigError."""
    if not isinstance(value, str) or value not in known:
        raise ConfigError(f"{name} is {value!r}; allowed: {', '.join(map(repr, known))}.")
    return value


def check_logits(logits: Tensor) -> None:
    """Refuse logits that are not a finite (B, C) array with B >= 1 and C >= 2."""
    if logits.dim() != 2 or logits.shape[0] < 1 or logits.shape[1] < 2:
        raise DataError(
            f"logits have shape {tuple(logits.shape)}; give (B, C) with B >= 1 and C >= 2."
        )
    if not logits.is_floating_point():
        raise DataError(f"logits have dtype {logits.dtype}; give floating point numbers.")
    # One cheap pass; a sum can overflow without any bad entry, so only then every entry is asked.
    if torch.isfinite(logits.detach().sum()):
        return
    bad = ~torch.isfinite(logits.detach()).all(dim=1)
    if bad.any():
        rows = bad.nonzero().flatten().tolist()
        kinds = "NaN" if torch.isnan(logits.detach()).any() else "infinite"
        raise DataError(
            f"logits hold {kinds} values in rows {shortlist(rows)}; every logit must be finite. "
            f"The model has diverged: lower the learning rate, or check its input."
        )


def check_labels(labels: Tensor, batch: int, classes: int, soft_targets: bool) -> None:
    """Refuse labels that are neither (B,) whole numbers below C nor allowed soft targets."""
    if labels.dim() == 2 and labels.is_floating_point():
        _check_soft(labels, batch, classes, soft_targets)
        return
    if tuple(labels.shape) != (batch,):
        also = f" or soft targets ({batch}, {classes})" if soft_targets else ""
        raise DataError(f"labels have shape {tuple(labels.shape)}; give ({batch},){also}.")
    if labels.is_floating_point() or labels.dtype == torch.bool:
        raise DataError(f"labels have dtype {labels.dtype}; give int64 class numbers.")
    low, high = (int(edge) for edge in torch.aminmax(labels))
    if low < 0 or high >= classes:
        wrong = low if low < 0 else high
        raise DataError(f"label {wrong} is out of range; allowed: 0 to {classes - 1}.")


def _check_soft(labels: Tensor, batch: int, classes: int, soft_targets: bool) -> None:
    if not soft_targets:
        raise DataError(
            f"labels have shape {tuple(labels.shape)}, but this loss takes no soft targets; "
            f"give ({batch},) int64 class numbers."
        )
    if tuple(labels.shape) != (batch, classes):
        raise DataError(
            f"soft targets have shape {tuple(labels.shape)}; give ({batch}, {classes})."
        )
    off = (labels.sum(dim=1) - 1).abs().amax()
    if not (labels.amin() >= 0 and off <= _ROW_SUM_TOLERANCE):
        raise DataError(
            f"soft targets must be 0 or more and sum to 1 in every row; the smallest entry is "
            f"{float(labels.amin()):g} and the largest distance of a row sum from 1 is "
            f"{float(off):g}."
        )


def check_index(index: Tensor | None, batch: int, samples: int) -> Tensor:
    """Give the sample ids, or refuse missing, misshapen or unknown ones."""
    if index is None:
        raise DataError(
            f"this loss remembers every sample and needs index: ({batch},) int64 sample ids, "
            f"0 to {samples - 1}."
        )
    if tuple(index.shape) != (batch,) or index.dtype != torch.int64:
        raise DataError(
            f"index has shape {tuple(index.shape)} and dtype {index.dtype}; "
            f"give ({batch},) int64 sample ids."
        )
    low, high = (int(edge) for edge in torch.aminmax(index))
    if low < 0 or high >= samples:
        wrong = low if low < 0 else high
        raise DataError(f"sample id {wrong} is out of range; allowed: 0 to {samples - 1}.")
    return index


def check_attention(attention: Tensor | None, batch: int) -> Tensor:
    """Give the attention logits, or refuse missing, misshapen or non-finite ones."""
    if attention is None:
        raise DataError(
            f"this loss needs attention: ({batch},) logits of the attention head, one a sample."
        )
    if tuple(attention.shape) != (batch,) or not attention.is_floating_point():
        raise DataError(
            f"attention has shape {tuple(attention.shape)} and dtype {attention.dtype}; "
            f"give ({batch},) floating point logits."
        )
    if not torch.isfinite(attention.detach()).all():
        raise DataError("attention holds NaN or infinite values; every logit must be finite.")
    return attention


def transition(name: str, matrix: object) -> Tensor:
    """Give a row-stochastic (C, C) float64 matrix, or raise ConfigError."""
    try:
        T = torch.as_tensor(matrix, dtype=torch.float64).detach().clone()
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"{name} is not a matrix of numbers: {error}.") from error
    if T.dim() != 2 or T.shape[0] != T.shape[1] or T.shape[0] < 2:
        raise ConfigError(f"{name} has shape {tuple(T.shape)}; give (C, C) with C >= 2.")
    off = float((T.sum(dim=1) - 1).abs().amax())
    if not (bool((T >= 0).all()) and off <= _ROW_SUM_TOLERANCE):
        raise ConfigError(
            f"{name} must hold P(given = j | true = i): entries of 0 or more, every row sums to 1. "
            f"Smallest entry {float(T.amin()):g}, largest distance of a row sum from 1 {off:g}."
        )
    empty = (T.sum(dim=0) == 0).nonzero().flatten().tolist()
    if empty:
        raise ConfigError(
            f"{name}: no true class can get the given labels {shortlist(empty)}; "
            f"every column needs an entry above 0."
        )
    return T / T.sum(dim=1, keepdim=True)


def structure(name: str, matrix: object) -> Tensor:
    """Give a (C, C) matrix of what is possible, the diagonal always, or raise ConfigError."""
    try:
        given = torch.as_tensor(matrix, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"{name} is not a matrix of 0 and 1: {error}.") from error
    if given.dim() != 2 or given.shape[0] != given.shape[1] or given.shape[0] < 2:
        raise ConfigError(f"{name} has shape {tuple(given.shape)}; give (C, C) with C >= 2.")
    strange = given[(given != 0) & (given != 1)]
    if len(strange):
        raise ConfigError(f"{name} holds {float(strange[0]):g}; give only 0 and 1.")
    return given.bool() | torch.eye(len(given), dtype=torch.bool)
