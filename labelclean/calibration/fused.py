"""Judge several posteriors of the true class at once, under one transition matrix.

Posteriors (trained heads, a generative model, neighbours) are fused into g, the normalised
geometric mean. The posterior J ∝ g_c T[c, given] ranks well and is what the likelihood supports,
but it calls too few labels wrong where errors follow the picture: such errors look like doubt. The
sharpened model of `fit` calls too many. The rate is taken between the two, as far towards the
second as the evidence of noise goes, and the odds of J are shifted to that rate; the order of J
stays.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit

from labelclean.arrays import Bools, Floats, Ints
from labelclean.calibration.checks import inspect
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.fit import NoiseFit, choose_rows, fit
from labelclean.calibration.judgement import Judgement, no_estimate, notes, rate_interval
from labelclean.calibration.noise_parameters import NoiseParameters
from labelclean.calibration.posterior import Posterior, score
from labelclean.calibration.transition import Transition

_BLOCK_NUMBERS = 1 << 23  # memberships held at a time: 64 MB


def fuse_posteriors(posteriors: Sequence[Floats]) -> NDArray[np.float32]:
    """Give the normalised geometric mean of posteriors, each (N, C) with rows that sum to one."""
    count, size = posteriors[0].shape
    fused = np.empty((count, size), np.float32)
    step, floor = max(1, _BLOCK_NUMBERS // size), judge_constants().posterior_floor
    for begin in range(0, count, step):
        part = slice(begin, begin + step)
        logs = np.zeros_like(posteriors[0][part])
        for posterior in posteriors:
            logs += np.log(posterior[part] + floor) / len(posteriors)
        weight = np.exp(logs - logs.max(axis=1, keepdims=True))
        fused[part] = weight / weight.sum(axis=1, keepdims=True)
    return fused


def improve_transition(
    label: Ints, probs: Floats, table: Floats, steps: int, verified: Bools | None = None
) -> Transition:
    """Re-estimate P(given | true) by expectation-maximisation with fixed posteriors.

    Args:
        label: (N,) given labels.
        probs: (N, C) probabilities of the true class that did not see the row's own label.
        table: (C, C) the matrix to start from, rows sum to one.
        steps: How many rounds.
        verified: (N,) rows whose label is known to be right: they were not flipped by chance.
    """
    size = len(table)
    pairs = np.divmod(np.arange(size * size), size)
    given, held = (label, probs) if verified is None else (label[~verified], probs[~verified])
    transition = None
    for _ in range(steps):
        count = _pair_counts(given, held, table)
        transition = Transition.from_counts(size, pairs, count.ravel())
        table = transition.matrix()
    return transition or Transition.start(size, pairs)


def _pair_counts(given: Ints, probs: Floats, table: Floats) -> Floats:
    """(C, C) expected number of rows of each true class (first) under each given label."""
    count = np.zeros_like(table)
    step = max(1, _BLOCK_NUMBERS // len(table))
    for begin in range(0, len(given), step):
        label = given[begin : begin + step]
        shares = responsibilities(label, probs[begin : begin + step], table)
        one = sparse.csr_array(
            (np.ones(len(label)), (label, np.arange(len(label)))), (len(table), len(label))
        )
        count += (one @ shares).T
    return count


def smoothed_transition(transition: Transition, share: float | None = None) -> Transition:
    """Let a share of the flips go anywhere, whatever pattern was found.

    With few rows the estimate may settle on "this pair never happens", and the posterior would then
    acquit rows that every posterior convicts. None: the share that suits a backbone's features.
    """
    share = judge_constants().unstructured if share is None else share
    size = transition.size
    even = np.where(
        transition.true == transition.given, 1 - transition.eps, transition.eps / max(size - 1, 1)
    )
    count = (1 - share) * transition.count + share * transition.mass[transition.true] * even
    return Transition.from_counts(size, (transition.true, transition.given), count)


def responsibilities(label: Ints, probs: Floats, table: Floats) -> Floats:
    """(N, C) P(true class | x, given label): how much each row belongs to each class."""
    shares = np.empty(probs.shape)
    step = max(1, _BLOCK_NUMBERS // len(table))
    for begin in range(0, len(label), step):
        part = slice(begin, begin + step)
        np.multiply(probs[part], table[:, label[part]].T, out=shares[part])
        shares[part] /= np.maximum(shares[part].sum(axis=1, keepdims=True), 1e-300)
    return shares


def judge_fused(
    label: Ints,
    fused: NDArray[np.float32],
    transition: Transition,
    verified: Bools | None = None,
) -> Judgement:
    """Estimate for every row the probability that its given label is wrong.

    Args:
        label: (N,) given labels.
        fused: (N, C) fused posterior of the true class.
        transition: P(given | true).
        verified: (N,) rows whose label a person vouched for.
    """
    seen = inspect(label, fused)
    disagreement = seen.disagreement
    if not seen.informative:
        return no_estimate(label, seen.p_given, disagreement)
    careful_params = NoiseParameters(1.0, np.zeros(fused.shape[1]), transition)
    careful = score(label, fused, careful_params)
    sharp = fit(label, fused, choose_rows(len(label)), verified)
    doubtful = np.ones(len(label), bool) if verified is None else ~verified
    log_odds = _shifted(careful, score(label, fused, sharp.params), sharp, doubtful)
    p_error = np.where(doubtful, expit(log_odds), 0.0)
    suggested, p_suggested = _suggestions(label, fused, careful_params, log_odds)
    suggested = np.where(doubtful, suggested, label)
    p_suggested = np.where(doubtful, p_suggested, np.float32(1))
    ranking = np.where(doubtful, log_odds, -np.inf).astype(np.float32)
    rate = float(p_error.mean())
    supported = float(np.where(doubtful, careful.p_error, 0.0).mean(dtype=np.float64))
    fitted = NoiseFit(
        careful_params,
        careful_params,
        supported,
        sharp.label_inverse_temperature,
        sharp.alignment,
        1.0,
    )
    return Judgement(
        ranking, p_error, suggested, p_suggested, rate,
        rate_interval(rate, supported, disagreement, len(label)), disagreement, fitted,
        notes(rate, supported, disagreement),
    )  # fmt: skip


def _shifted(careful: Posterior, sharpened: Posterior, sharp: NoiseFit, doubtful: Bools) -> Floats:
    """Move the careful log-odds, all by the same amount, to the rate the evidence supports."""
    low, high = (
        float(said.p_error[doubtful].mean(dtype=np.float64)) for said in (careful, sharpened)
    )
    weight = sharp.supported / (sharp.supported + judge_constants().fused_doubt)
    rate = float(np.clip(low + weight * (high - low), 1e-9, 1 - 1e-9))
    odds = careful.log_odds.astype(np.float64)
    of_doubtful = odds[doubtful]
    shift: float = brentq(lambda move: float(expit(of_doubtful + move).mean()) - rate, -50.0, 50.0)
    return odds + shift


def _suggestions(
    label: Ints, fused: NDArray[np.float32], params: NoiseParameters, log_odds: Floats
) -> tuple[Ints, NDArray[np.float32]]:
    """Suggest the most probable class at the shifted rate; its probability stays the careful one.

    Only what the likelihood itself supports may be relabelled without asking a person.
    """
    table = params.transition.matrix()
    suggested = np.empty(len(label), np.int64)
    sure = np.empty(len(label), np.float32)
    step = max(1, _BLOCK_NUMBERS // fused.shape[1])
    for begin in range(0, len(label), step):
        part = slice(begin, begin + step)
        given, odds = label[part], log_odds[part]
        rows = np.arange(len(given))
        joint = responsibilities(given, fused[part].astype(np.float64), table)
        others = joint.copy()
        others[rows, given] = 0
        rival = others.argmax(axis=1)
        share = others[rows, rival] / np.maximum(others.sum(axis=1), 1e-300)
        suggested[part] = np.where(expit(odds) * share > expit(-odds), rival, given)
        sure[part] = joint[rows, suggested[part]]
    return suggested, sure
