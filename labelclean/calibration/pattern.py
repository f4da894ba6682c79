"""How far the pattern of the flips is believed: a transition matrix mixed with an even one.

    M = (1 - s) T + s E

E flips to every other class alike. Where errors follow no pattern (a heart among numerals), T
acquits whatever it has no pattern for, and s must be large; where cats are called dogs, small.
Matrices that are estimated on some folds and asked to explain the labels of another choose s. A
row's own pair never feeds the matrix it is judged by.
"""

import numpy as np
from scipy import sparse

from labelclean.arrays import Floats, Ints, Probs
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.transition import Transition

_BLOCK_NUMBERS = 1 << 22


def even_matrix(size: int, right: float) -> Floats:
    """(C, C) with the same diagonal everywhere and the same value everywhere else."""
    matrix = np.full((size, size), (1 - right) / max(size - 1, 1))
    np.fill_diagonal(matrix, right)
    return matrix


def start_matrix(size: int) -> Floats:
    """(C, C) what estimates start from."""
    return even_matrix(size, 1 - judge_constants().first_flips)


def fit_pattern(
    label: Ints, probs: Probs, share: float, start: Floats, steps: int | None = None
) -> Floats:
    """(C, C) P(given | true) by expectation-maximisation with fixed posteriors.

    Args:
        label: (n,) given labels.
        probs: (n, C) posteriors that did not see the row's own label.
        share: s, the share of the even matrix.
        start: (C, C) where to start, rows sum to one.
        steps: How many rounds; None: as many as usual.
    """
    table = start
    for _ in range(steps or judge_constants().pattern_steps):
        table = _mixed(pair_counts(label, probs, table), share)
    return table


def cross_fitted(
    label: Ints, probs: Probs, fold: Ints, share: float, start: Floats, steps: int | None = None
) -> Floats:
    """(K, C, C) for every fold the matrix that the other folds give.

    Args:
        label: (n,) given labels.
        probs: (n, C) posteriors that did not see the row's own label.
        fold: (n,) 0 ... K-1.
        share: s, the share of the even matrix.
        start: (C, C) where to start, rows sum to one.
        steps: How many rounds; None: as many as usual.
    """
    folds = int(fold.max()) + 1
    members = [np.flatnonzero(fold == k) for k in range(folds)]
    tables = np.stack([start] * folds)
    for _ in range(steps or judge_constants().pattern_steps):
        counts = [
            pair_counts(label[rows], probs[rows], table)
            for rows, table in zip(members, tables, strict=True)
        ]
        total = np.sum(counts, axis=0)
        tables = np.stack([_mixed(total - count, share) for count in counts])
    return tables


def choose_share(label: Ints, probs: Probs, fold: Ints) -> float:
    """Give the largest share of the even matrix that explains unseen labels as well as any.

    Args:
        label: (n,) given labels.
        probs: (n, C) posteriors that did not see the row's own label.
        fold: (n,) 0 ... K-1.
    """
    known, start = judge_constants(), start_matrix(probs.shape[1])
    shares = known.pattern_shares
    explained = np.empty((len(shares), len(label)))
    for at, share in enumerate(shares):
        for k in range(int(fold.max()) + 1):
            out = fold == k
            table = fit_pattern(label[~out], probs[~out], share, start)
            explained[at, out] = np.log((probs[out] * table[:, label[out]].T).sum(axis=1) + 1e-12)
    best = int(explained.mean(axis=1).argmax())
    loss = explained[best] - explained
    allowed = known.choice_errors * loss.std(axis=1) / np.sqrt(len(label))
    return max(s for s, fine in zip(shares, loss.mean(axis=1) <= allowed, strict=True) if fine)


def responsibilities(label: Ints, probs: Probs, table: Floats) -> Floats:
    """(N, C) P(true class | x, given label): how much each row belongs to each class."""
    joint: Floats = np.multiply(probs, table[:, label].T, dtype=np.float64)
    joint /= np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
    return joint


def _mixed(count: Floats, share: float) -> Floats:
    size = len(count)
    pairs = np.divmod(np.arange(size * size), size)
    right = float(np.clip(np.trace(count) / max(float(count.sum()), 1e-12), 0.02, 1 - 1e-4))
    pattern = Transition.from_counts(size, pairs, count.ravel()).matrix()
    return (1 - share) * pattern + share * even_matrix(size, right)


def pair_counts(label: Ints, probs: Probs, table: Floats) -> Floats:
    """(C, C) expected number of rows of each true class (first) under each given label."""
    size = len(table)
    count = np.zeros_like(table)
    step = max(1, _BLOCK_NUMBERS // size)
    for begin in range(0, len(label), step):
        given = label[begin : begin + step]
        joint = responsibilities(given, probs[begin : begin + step], table)
        ones = sparse.csr_array(
            (np.ones(len(given)), (given, np.arange(len(given)))), (size, len(given))
        )
        count += (ones @ joint).T
    return count
