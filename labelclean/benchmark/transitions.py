"""Noise as a matrix: who is mistaken for whom, and how labels are drawn from it."""

import numpy as np

from labelclean.benchmark.injection import rows_by_class
from labelclean.errors import ConfigError, shortlist


def resample(label: np.ndarray, transition: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw every sample's noisy label from the row of its clean label.

    Args:
        label: (N,) clean labels.
        transition: (C, C), row c holds P(noisy | clean = c).
        rng: Where the draws come from, one per sample.

    Returns:
        (N,) int64 noisy labels; one of probability zero is never drawn.
    """
    uniform = rng.random(len(label))
    cumulative = np.cumsum(transition, axis=1)
    # Divided by its own end, a sum is exactly 1 and no draw falls behind the last class.
    ends = cumulative / cumulative[:, -1:]
    noisy = label.copy()
    for code, rows in enumerate(rows_by_class(label, len(transition))):
        noisy[rows] = np.searchsorted(ends[code], uniform[rows], side="right")
    return noisy


def soften(counterpart: np.ndarray, rate: float) -> np.ndarray:
    """Turn "what a flipped label becomes" into a transition matrix.

    Args:
        counterpart: (C, C), row c the distribution of a flipped label of class c; the unit vector
            of c for a class that stays clean.
        rate: Probability that a label is flipped.

    Returns:
        (C, C) row-stochastic.
    """
    return (1.0 - rate) * np.eye(len(counterpart)) + rate * counterpart


def from_map(target: np.ndarray, num_classes: int) -> np.ndarray:
    """Write a class-pair map as counterparts.

    Args:
        target: (C,) the class each is mistaken for, itself for a class that stays clean.
        num_classes: C.

    Returns:
        (C, C) one 1 per row.

    Raises:
        ConfigError: The map is not C class positions, or leaves every class clean.
    """
    if target.shape != (num_classes,) or target.dtype.kind not in "iu":
        raise ConfigError(
            f"the class map has shape {target.shape} and type {target.dtype}; "
            f"it must hold one position for each of the {num_classes} classes."
        )
    bad = target[(target < 0) | (target >= num_classes)]
    if len(bad):
        raise ConfigError(
            f"the class map points at {shortlist(bad)}; positions must lie in 0..{num_classes - 1}."
        )
    if np.array_equal(target, np.arange(num_classes)):
        raise ConfigError("the class map sends every class to itself; name at least one pair.")
    return np.asarray(np.eye(num_classes)[target])


def from_groups(
    groups: np.ndarray, num_classes: int, variant: str, rng: np.random.Generator
) -> np.ndarray:
    """Write confusion inside groups of classes as counterparts.

    Args:
        groups: (G, K) class positions, each at most once, K at least 2.
        num_classes: C; classes in no group stay clean.
        variant: "circular" to the next in the group, "swap" two drawn at random per group,
            "uniform" to any other member.
        rng: Where the pairs of "swap" come from.

    Returns:
        (C, C) rows that sum to 1.

    Raises:
        ConfigError: The groups are not different class positions.
    """
    if groups.ndim != 2 or groups.shape[1] < 2 or groups.dtype.kind not in "iu":
        raise ConfigError(
            f"the class groups have shape {groups.shape} and type {groups.dtype}; "
            "they must be a table of class positions with at least 2 per row."
        )
    flat = groups.ravel()
    if len(np.unique(flat)) != len(flat) or flat.min() < 0 or flat.max() >= num_classes:
        raise ConfigError(
            f"the class groups must name different classes in 0..{num_classes - 1}; "
            f"they name {shortlist(flat)}."
        )
    counterpart = np.eye(num_classes)
    for group in groups:
        if variant == "uniform":
            counterpart[np.ix_(group, group)] = 1.0 / (len(group) - 1)
            counterpart[group, group] = 0.0
            continue
        ring = group if variant == "circular" else rng.choice(group, 2, replace=False)
        counterpart[ring] = np.eye(num_classes)[np.roll(ring, -1)]
    return counterpart


def check_transition(transition: np.ndarray, num_classes: int) -> np.ndarray:
    """Give T as float64 with rows that sum to exactly 1, or refuse it with every fault named.

    Args:
        transition: (C, C), row the clean and column the noisy label.
        num_classes: C.

    Raises:
        ConfigError: The shape is wrong, or a row is not a distribution.
    """
    matrix = np.asarray(transition)
    if matrix.shape != (num_classes, num_classes) or matrix.dtype.kind not in "fiu":
        raise ConfigError(
            f"the transition matrix has shape {matrix.shape} and type {matrix.dtype}; "
            f"the data has {num_classes} classes, so it must be numbers of shape "
            f"({num_classes}, {num_classes})."
        )
    matrix = matrix.astype(np.float64)
    sums = matrix.sum(axis=1)
    # Written so that NaN fails too; 1e-6 forgives a matrix that was printed with few digits.
    valid = (matrix >= 0.0).all(axis=1) & (np.abs(sums - 1.0) <= 1e-6)
    if not valid.all():
        faults = shortlist(
            f"row {row} (sum {sums[row]:.6g}, least {matrix[row].min():.6g})"
            for row in np.flatnonzero(~valid).tolist()
        )
        raise ConfigError(
            f"the transition matrix is not row-stochastic: {faults}. Each row is a distribution "
            "over noisy labels: no negative entries, sum 1."
        )
    return np.asarray(matrix / sums[:, None])
