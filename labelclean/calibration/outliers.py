"""From planted outliers to a probability: how much likelier a picture shows none of the classes.

Logistic regressions tell each kind of planted picture from the data set's own, the more a row's
label is believed the more it counts as an example. Their slopes may not be negative: farther and
more disputed never means more ordinary, so that they learn how far is far, not what the planted
pictures look like. The log-odds are log f_k / f_0 where as many planted as real rows are looked at.

What outliers that were found look like is learnt in the same way, from one number: how much a row's
features are like theirs.

How many outliers there are is a mixture, fitted by EM to all rows at once:

    (1 - sum_k pi_k) f_0(x) ((1 - eps) g_y + eps sum_{c != y} g_c Q[c, y]) + sum_k pi_k f_k(x) / C

An ordinary picture has the label its class posteriors g say, or a wrong one after the pattern Q; an
outlier has any. So rows are outliers where both the picture and its label speak for it: a picture
that looks like another class is mislabelled instead, an odd one that fits its label is only odd.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from labelclean.arrays import Bools, Floats, Ints, Probs

FOLDS = 5
RIDGE = 1.0
SURE = 12.0  # log-odds beyond which few planted rows say nothing
_FIT_ROWS = 50.0  # both sides weigh as much as so many rows, against the ridge
_START_SHARE, _START_WRONG, _LEAST = 0.02, 0.1, 1e-6
_STEPS = 200
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class OutlierMixture:
    """What is believed about a data set as a whole.

    Args:
        shares: (K,) share of rows that are outliers like each planted kind.
        wrong: Share of wrong labels among the others, as far as outliers do not explain them.
    """

    shares: Floats
    wrong: float


def planted_log_ratios(real: Floats, planted: Floats, kind: Ints, weight: Floats) -> Floats:
    """(N + P, K) log f_k / f_0 of all rows, each by regressions that did not see it.

    Args:
        real: (N, S) signals of the data set's rows, higher is stranger.
        planted: (P, S) of the planted ones.
        kind: (P,) their kinds, 0 ... K-1.
        weight: (N,) how good an example of an ordinary row each is.
    """
    middle = np.average(real, axis=0, weights=weight)
    width = np.sqrt(np.average((real - middle) ** 2, axis=0, weights=weight))
    every = (np.concatenate([real, planted]) - middle) / np.maximum(width, 1e-9)
    count = len(real)
    fold = np.concatenate([np.arange(count), np.arange(len(planted)) // (kind.max() + 1)]) % FOLDS
    found = np.empty((len(every), int(kind.max()) + 1))
    ordinary = np.concatenate([weight, np.zeros(len(planted))])
    of_kind = np.concatenate([np.full(count, -1), kind])
    for left_out in range(FOLDS):
        asked = fold == left_out
        for one in range(found.shape[1]):
            seen = ~asked & ((of_kind < 0) | (of_kind == one))
            slope = _fit(every[seen], ordinary[seen], (of_kind[seen] == one).astype(np.float64))
            found[asked, one] = every[asked] @ slope[1:] + slope[0]
    return np.clip(found, -SURE, SURE)


def found_log_ratio(
    likeness: Floats, found: Floats, weight: Floats, fold: NDArray[np.integer]
) -> Floats:
    """(N,) log f / f_0 of all rows, where f is how outliers that were found look.

    Args:
        likeness: (N,) how much each row is like them, from features; it never saw the row's own.
        found: (N,) the probability with which each was found.
        weight: (N,) how good an example of an ordinary row each is.
        fold: (N,) folds; a row's ratio is learnt from the others.
    """
    scale = (likeness - likeness.mean()) / max(float(likeness.std()), 1e-12)
    ratio = np.empty(len(found))
    for left_out in np.unique(fold):
        seen, asked = fold != left_out, fold == left_out
        slope = _fit(scale[seen, None], weight[seen] * (1 - found[seen]), found[seen])
        ratio[asked] = scale[asked] * slope[1] + slope[0]
    return np.clip(ratio, -SURE, SURE)


def _fit(rows: Floats, ordinary: Floats, strange: Floats) -> Floats:
    """(1 + S,) intercept and slopes of a balanced logistic regression without negative slopes.

    Args:
        rows: (n, S) signals.
        ordinary: (n,) how good an example of an ordinary row each is.
        strange: (n,) how good an example of an outlier each is.
    """
    ordinary, strange = (
        _FIT_ROWS * part / max(float(part.sum()), 1e-12) for part in (ordinary, strange)
    )
    both = ordinary + strange

    def cost(slope: Floats) -> tuple[float, Floats]:
        score = rows @ slope[1:] + slope[0]
        lost = both @ np.logaddexp(0, score) - strange @ score
        gap = both * expit(score) - strange
        change = np.concatenate([[gap.sum()], rows.T @ gap + slope[1:] / RIDGE])
        return float(lost + 0.5 * (slope[1:] @ slope[1:]) / RIDGE), change

    bounds = [(None, None), *[(0.0, None)] * rows.shape[1]]
    from scipy.optimize import minimize  # noqa: PLC0415 (not every command asks for it)

    found: Floats = minimize(
        cost, np.zeros(1 + rows.shape[1]), jac=True, bounds=bounds, method="L-BFGS-B"
    ).x
    return found


def label_likelihood(label: Ints, probs: Probs, table: Floats) -> tuple[Floats, Floats]:
    """Give what posteriors say of a right label, and of a wrong one after a matrix's pattern.

    Args:
        label: (N,) given labels.
        probs: (N, C) class posteriors that did not see them.
        table: (C, C) P(given | true), rows sum to one.

    Returns:
        (N,) g_y, and (N,) sum over other classes c of g_c Q[c, y].
    """
    pattern = table * (1 - np.eye(len(table)))
    pattern /= np.maximum(pattern.sum(axis=1, keepdims=True), 1e-12)
    right, wrong = np.empty(len(label)), np.empty(len(label))
    for begin in range(0, len(label), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        rows = np.arange(len(label[part]))
        right[part] = probs[part][rows, label[part]]
        wrong[part] = np.einsum("nc,cn->n", probs[part], pattern[:, label[part]])
    return right, wrong


def fit_mixture(log_ratio: Floats, right: Floats, wrong: Floats, classes: int) -> OutlierMixture:
    """Fit how many outliers of each kind, and wrong labels, explain the rows best.

    Args:
        log_ratio: (N, K) log f_k / f_0.
        right: (N,) likelihood of the label where it is right.
        wrong: (N,) the same where it is wrong.
        classes: C.
    """
    strange = np.exp(log_ratio) / classes
    shares, error = np.full(log_ratio.shape[1], _START_SHARE), _START_WRONG
    for _ in range(_STEPS):
        mislabelled, lost, total = _parts(strange, right, wrong, shares, error)
        ordinary = 1 - lost.sum(axis=1) / total
        error = float(np.clip((mislabelled / total).sum() / ordinary.sum(), _LEAST, 1 - _LEAST))
        shares = np.maximum((lost / total[:, None]).mean(axis=0), _LEAST)
    return OutlierMixture(shares, error)


def mixture_probability(
    mixture: OutlierMixture, log_ratio: Floats, right: Floats, wrong: Floats, classes: int
) -> Floats:
    """(N,) probability of an outlier; arguments as `fit_mixture`."""
    strange = np.exp(log_ratio) / classes
    _, lost, total = _parts(strange, right, wrong, mixture.shares, mixture.wrong)
    found: Floats = lost.sum(axis=1) / total
    return found


def _parts(
    strange: Floats, right: Floats, wrong: Floats, shares: Floats, error: float
) -> tuple[Floats, Floats, Floats]:
    """Give the likelihood of a mislabelled row, of an outlier by kind, and of all together."""
    lost = strange * shares
    rest = 1 - shares.sum()
    mislabelled = rest * error * wrong
    return mislabelled, lost, rest * (1 - error) * right + mislabelled + lost.sum(axis=1) + 1e-30


def believed_rows(right: Floats, verified: Bools | None) -> Floats:
    """(N,) how good an example of an ordinary row each is: as far as its label is believed."""
    weight = right + 1e-3
    return weight if verified is None else np.where(verified, 1.0, weight)
