"""How likely a label is wrong by signals that saw it, learnt from rows that were planted wrong.

Logistic regressions tell each kind of planted row from rows whose label is believed,

    log f_k(x) / f_0(x) = b_k + sum_j w_kj x_j,   w >= 0

where x are suspicions, more is more suspect, so no slope is negative. A signal that does not help
gets weight zero. How many given labels are wrong in the way of each kind is a mixture,

    (1 - sum_k pi_k) f_0(x) + sum_k pi_k f_k(x),

fitted by expectation-maximisation to the rows that were not planted, as the same training saw them.
Some believed rows are wrong, too, a share c_k in the way of kind k, so what the regressions call
right is (1 - c) f_0 + sum_k c_k f_k; taken out, r_k becomes r_k (1 - c) / (1 - sum_k c_k r_k).
The log-odds of an error are log sum_k pi_k f_k(x) - log (1 - sum_k pi_k) f_0(x).

A kind beside the first is left out unless the rows are likelier with it by `kind_gain`: where there
are no such errors, its suspicions would only disturb the ranking.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp

from labelclean.arrays import Bools, Floats
from labelclean.calibration.constants import judge_constants

_STEPS = 1500
_LEAST = 1e-6
_START = 0.03
_LEAST_RIGHT = 1e-3  # of what the regressions call right, at any point
_FAR = 50.0  # log-ratios beyond which nothing changes


@dataclass(frozen=True, slots=True)
class PlantedMixture:
    """What planted rows say about K kinds of errors by J signals.

    Args:
        slopes: (K, J) at least 0.
        biases: (K,) such that the log-ratio is f_k over f_0.
        shares: (K,) pi, the share of given labels that are wrong in that way.
        hidden: (K,) c, the same among the rows that served as examples of right labels.
        least: The share of wrong labels, were all believed rows right.
    """

    slopes: Floats
    biases: Floats
    shares: Floats
    hidden: Floats
    least: float

    @property
    def rate(self) -> float:
        """The share of given labels that are wrong in one of the ways."""
        return float(min(1.0, self.shares.sum()))

    def log_odds(self, signals: Floats) -> Floats:
        """(N,) log-odds of an error of rows with signals (N, J)."""
        ratios = np.clip(signals @ self.slopes.T + self.biases, -_FAR, _FAR)
        odds: Floats = logsumexp(ratios + np.log(self.shares + _LEAST), axis=1)
        right = np.maximum(1 - np.exp(ratios) @ self.hidden, _LEAST_RIGHT)
        odds += np.log(1 - self.hidden.sum()) - np.log(right) - np.log(max(1 - self.rate, _LEAST))
        return odds


def fit_planted_mixture(
    signals: Floats,
    kinds: Sequence[Bools],
    believed: Bools,
    convicted: Bools,
    heard: Sequence[Bools],
) -> PlantedMixture:
    """Learn from planted rows what wrong labels look like, and how many there are.

    Believed rows that are convicted are left out of the examples of right labels: a network that
    learnt a wrong label by heart believes it. Among the others, wrong labels are too few, so the
    shares come out rather too large, and too small, `least`, where convicted rows stay.

    Args:
        signals: (N, J) suspicions by a training that saw the planted labels.
        kinds: K times (N,) which rows were planted so; no row twice, each kind has some. The first
            is always heard, others where the rows are likelier with them.
        believed: (N,) rows whose label somebody believes.
        convicted: (N,) rows whose label those who did not see it call wrong.
        heard: K times (J,) which signals know about that kind; the others say nothing of it.
    """
    planted = np.any(kinds, axis=0)
    right = _some(believed & ~planted & ~convicted, ~planted)
    slopes, biases, likelier, shares = _fitted(signals, kinds, right, heard)
    if len(kinds) > 1:
        free = likelier[~planted]
        alone = _shares(free[:, :1])
        gain = _likelihood(free, shares) - _likelihood(free[:, :1], alone)
        if gain < judge_constants().kind_gain:
            kinds, heard, shares = kinds[:1], heard[:1], alone
            slopes, biases, likelier = slopes[:1], biases[:1], likelier[:, :1]
    everybody = _fitted(signals, kinds, _some(believed & ~planted, ~planted), heard)
    hidden = _parts(likelier[right], shares).mean(axis=0)
    least = float(min(everybody[-1].sum(), shares.sum()))
    return PlantedMixture(slopes, biases, shares, hidden, least)


def _some(rows: Bools, otherwise: Bools) -> Bools:
    return rows if rows.any() else otherwise


def _fitted(
    signals: Floats, kinds: Sequence[Bools], right: Bools, heard: Sequence[Bools]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Give slopes (K, J), biases (K,), the ratios of all rows (N, K), and shares (K,)."""
    planted = np.any(kinds, axis=0)
    slopes, biases = np.zeros((len(kinds), signals.shape[1])), np.zeros(len(kinds))
    for at, (rows, known) in enumerate(zip(kinds, heard, strict=True)):
        seen = rows | right
        slope, bias = _log_ratio(signals[seen][:, known], rows[seen])
        slopes[at, known], biases[at] = slope, bias
    likelier = np.exp(np.clip(signals @ slopes.T + biases, -_FAR, _FAR))
    return slopes, biases, likelier, _shares(likelier[~planted])


def _log_ratio(signals: Floats, wrong: Bools) -> tuple[Floats, float]:
    """Give slopes (J,), none negative, and the bias of log f(wrong) - log f(right)."""
    mean, scale = signals.mean(axis=0), signals.std(axis=0) + 1e-9
    standard, target = (signals - mean) / scale, wrong.astype(np.float64)
    ridge = judge_constants().planted_ridge

    def cost(values: Floats) -> tuple[float, Floats]:
        logits = standard @ values[1:] + values[0]
        gap = expit(logits) - target
        loss = float((np.logaddexp(0, logits) - target * logits).mean())
        slope = (standard.T @ gap) / len(gap) + 2 * ridge * values[1:]
        return loss + ridge * float(values[1:] @ values[1:]), np.r_[gap.mean(), slope]

    count = signals.shape[1]
    bounds = [(None, None)] + [(0.0, None)] * count
    from scipy.optimize import minimize  # noqa: PLC0415 (not every command asks for it)

    found = minimize(cost, np.zeros(1 + count), jac=True, method="L-BFGS-B", bounds=bounds)
    slopes = found.x[1:] / scale
    share = float(np.clip(target.mean(), 1e-9, 1 - 1e-9))
    return slopes, float(found.x[0] - mean @ slopes - np.log(share / (1 - share)))


def _shares(likelier: Floats) -> Floats:
    """(K,) shares that make ratios (n, K) likeliest."""
    shares = np.full(likelier.shape[1], _START)
    for _ in range(_STEPS):
        now: Floats = _parts(likelier, shares).mean(axis=0)
        settled = float(np.abs(now - shares).max()) < _LEAST / 10
        shares = now
        if settled:
            break
    return shares


def _likelihood(likelier: Floats, shares: Floats) -> float:
    """Give the log-likelihood of rows with ratios (n, K), beside that of right labels alone."""
    return float(np.log(likelier @ shares + 1 - shares.sum()).sum())


def _parts(likelier: Floats, shares: Floats) -> Floats:
    """(n, K) probability that a row is of each kind."""
    joint = likelier * shares
    parts: Floats = joint / (joint.sum(axis=1) + 1 - shares.sum())[:, None]
    return parts
