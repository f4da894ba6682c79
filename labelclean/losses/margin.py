"""The two gradients written by hand, once, that make the losses exact and fast."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

Rowwise = Callable[..., tuple[Tensor, ...]]
Scattered = tuple[Tensor, Tensor, Tensor | None]
_BLOCK = 2**18  # numbers a thread works on: a megabyte in float32


class _Margin(torch.autograd.Function):
    """Log-odds of the given label; see `margin`."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor) -> Tensor:
        odds, rivals = by_blocks(odds_and_rivals, logits, labels)
        ctx.save_for_backward(rivals, labels)
        return odds

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        rivals, labels = ctx.saved_tensors
        slope = slopes[0].unsqueeze(1)
        return (rivals * -slope).scatter_(1, labels.unsqueeze(1), slope), None


class _KnownGradient(torch.autograd.Function):
    """Values whose gradients were worked out beside them; see `with_gradient`."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, *parts: Tensor | None) -> Tensor:
        ctx.save_for_backward(*parts[::3], *parts[2::3])
        ctx.shapes = [source.shape for source in parts[1::3] if source is not None]
        return values.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        count = len(ctx.shapes)
        all_rows, all_places = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        gradients: list[Tensor | None] = [None]
        for rows, places, shape in zip(all_rows, all_places, ctx.shapes, strict=True):
            slope = slopes[0] if rows.dim() == 1 else slopes[0].unsqueeze(1)
            if places is None:
                gradient = rows * slope
            else:
                gradient = rows.new_zeros(shape)
                for block in blocks(rows):
                    gradient.index_add_(0, places[block], rows[block] * slope[block])
            gradients += [None, gradient, None]
        return tuple(gradients)


def blocks(rows: Tensor) -> list[slice]:
    """Cut (B, C) rows into blocks that fit the cache of a CPU's cores; elsewhere into one block."""
    step = len(rows)
    if rows.device.type == "cpu":
        step = max(1, _BLOCK * torch.get_num_threads() // rows.shape[1])
    return [slice(start, start + step) for start in range(0, len(rows), step)]


def by_blocks(rowwise: Rowwise, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Apply a row-wise function block by block, so that its temporaries stay in a CPU's cache.

    A pass over a large array that is not in the cache costs as much as several that are.

    Args:
        rowwise: Takes tensors with the same number of rows, gives such tensors.
        tensors: The first has shape (B, C), the others (B, ...).

    Returns:
        What `rowwise` gives, for all rows.
    """
    batch = len(tensors[0])
    results: tuple[Tensor, ...] = ()
    for block in blocks(tensors[0]):
        parts = rowwise(*(tensor[block] for tensor in tensors))
        if len(parts[0]) == batch:
            return parts
        results = results or tuple(part.new_empty(batch, *part.shape[1:]) for part in parts)
        for result, part in zip(results, parts, strict=True):
            result[block] = part
    return results


def odds_and_rivals(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Give the (B,) log-odds of the given label and the (B, C) softmax over the other classes."""
    column = labels.unsqueeze(1)
    others = logits.scatter(1, column, -torch.inf)
    rivals = torch.softmax(others, dim=1)
    return take(logits, labels) - log_total(others, rivals), rivals


def log_total(logits: Tensor, probs: Tensor) -> Tensor:
    """Give the (B,) logsumexp of logits from their softmax.

    Read back from the largest entry: its share is at least 1/C, so no digit is lost, and two maxima
    cost less than torch's logsumexp.
    """
    return logits.amax(dim=1) - probs.amax(dim=1).log()


def margin(logits: Tensor, labels: Tensor) -> Tensor:
    """Give the log-odds of the given label, s = z_y - logsumexp over j != y of z_j.

    Every loss of p_y alone is a function of s: p_y = sigmoid(s), 1 - p_y = sigmoid(-s),
    log p_y = logsigmoid(s). Nothing is lost at p_y near 0 or 1, where 1 - p_y by subtraction is 0.
    The gradient, ds/dz = e_y - softmax over j != y, costs one pass over the logits.
    First order only: the gradient itself cannot be differentiated.

    Args:
        logits: (B, C).
        labels: (B,) int64.

    Returns:
        (B,).
    """
    odds: Tensor = _Margin.apply(logits, labels)
    return odds


def with_gradient(values: Tensor, *parts: tuple[Tensor, Tensor] | Scattered) -> Tensor:
    """Give (B,) `values` with gradients that are known already. First order only.

    Args:
        values: (B,), computed without autograd.
        parts: Pairs (rows, source): the gradient of every value by its row of the source, in the
            shape of the source, which is (B, C) or (B,). With a third entry, (B,) places, value b
            depends on row places[b] of the source instead.
    """
    flat = [entry for part in parts for entry in (*part, None)[:3]]
    attached: Tensor = _KnownGradient.apply(values, *flat)
    return attached


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Give (B,) -log p_y for (B,) labels, or `soft_cross_entropy` for (B, C) ones."""
    if labels.dim() == 2:
        return soft_cross_entropy(logits, labels)
    return -F.logsigmoid(margin(logits, labels))


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Give (B,) -sum_k q_k log p_k for (B, C) constant targets q; the gradient is p sum(q) - q."""

    def rowwise(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        log_p = torch.log_softmax(logits, dim=1)
        values = -(targets * log_p).sum(dim=1)
        return values, log_p.exp_().mul_(targets.sum(dim=1, keepdim=True)).sub_(targets)

    with torch.no_grad():
        values, rows = by_blocks(rowwise, logits, targets.to(logits.dtype))
    return with_gradient(values, (rows, logits))


def take(rows: Tensor, labels: Tensor) -> Tensor:
    """Give the (B,) entries of (B, C) rows at their labels."""
    return rows.gather(1, labels.unsqueeze(1)).squeeze(1)
