"""What a step optimises when a strategy has judged it: any loss, weights, soft targets."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from labelclean.losses import RobustLoss
from labelclean.strategies import Verdict


def held_to_labels(verdict: Verdict, vouched: Tensor, labels: Tensor, by_parts: bool) -> Verdict:
    """Let rows that a person vouched for count, towards the label they were given.

    Args:
        verdict: What a strategy says.
        vouched: (M,) which rows those are.
        labels: (M,) given labels.
        by_parts: Whether weights are shares of the step's direction, which stay as they are.
    """
    targets, weights = verdict.targets, verdict.weights
    if targets is not None and targets.is_floating_point():
        given = nn.functional.one_hot(labels, targets.shape[2]).to(targets.dtype)
        targets = torch.where(vouched[:, None], given, targets)
    elif targets is not None:
        targets = torch.where(vouched, labels, targets)
    if weights is not None and not by_parts:
        weights = weights.masked_fill(vouched, 1.0)
    return replace(verdict, targets=targets, weights=weights)


def judged_objective(
    loss: RobustLoss,
    verdict: Verdict,
    logits: Tensor,
    attention: Tensor | None,
    labels: Tensor,
    index: Tensor,
    sample_weight: Tensor,
) -> Tensor | None:
    """Give the live sum over networks and rows; None: nothing counts.

    Args:
        loss: One value a row.
        verdict: What counts how much, towards which targets.
        logits: (K, M, C).
        attention: (K, M), or None.
        labels: (M,) given labels.
        index: (M,) row numbers.
        sample_weight: (M,) how much a row counts to the user.
    """
    sum_of_weights = float(sample_weight.sum()) or 1.0
    divisor = sum_of_weights
    if verdict.divisor is not None:
        divisor = verdict.divisor * sum_of_weights / len(sample_weight)
    total = verdict.penalty
    for number, scores in enumerate(logits):
        weight = sample_weight
        rows: Tensor | None = None
        if verdict.weights is not None:
            # A row that does not count must not meet the loss: some divide by all they see.
            rows = verdict.weights[number].nonzero().flatten()
            if not len(rows):
                continue
            weight = (verdict.weights[number] * sample_weight)[rows]
        targets = labels if verdict.targets is None else verdict.targets[number]
        beside = None if attention is None else attention[number]
        values = _values(loss, *(_part(each, rows) for each in (scores, targets, index, beside)))
        part = (values * weight).sum() / divisor
        total = part if total is None else total + part
    return total


def _part(values: Tensor | None, rows: Tensor | None) -> Tensor | None:
    return values if values is None or rows is None else values[rows]


def _values(
    loss: RobustLoss,
    logits: Tensor | None,
    targets: Tensor | None,
    index: Tensor | None,
    attention: Tensor | None,
) -> Tensor:
    """Give (M,) values; towards soft targets sum_k q_k L(z, k), or the loss's own definition."""
    if logits is None or targets is None:
        raise TypeError("a loss needs logits and targets")
    if targets.dim() == 1 or loss.soft_targets:
        given: Tensor = loss(logits, targets, index=index, attention=attention)
        return given
    row, label = targets.nonzero(as_tuple=True)
    values: Tensor = loss(
        logits[row],
        label,
        index=_part(index, row),
        attention=_part(attention, row),
    )
    shares = targets[row, label].to(values.dtype)
    return torch.zeros(len(targets), dtype=values.dtype, device=values.device).index_add(
        0, row, values * shares
    )
