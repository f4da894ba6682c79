"""Judge a pool of class posteriors: which labels are wrong, how many, and what fits no class.

The pool g says how likely each class is; the matrix M, estimated without the row's own fold, how
likely each class is to be given this label. Beside the classes stands "none of these": a row far
from all of them may be something else altogether. The log-odds of an error are

    log (sum_{c != given} g_c M[c, given] + none) - log g_given M[given, given]

and rank. The likelihood supports a rate; where flips have a pattern, models are surer of the truth
than they say, and it is raised; where even flips explain nothing, there is no noise to be seen.
The log-odds are shifted to the rate, so that the order stays.

Where a network that saw the labels speaks, too, planted rows say how its suspicions and these
log-odds become one (`planted_mixture`), and the rate lies half-way between
the least and the most that they support.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from labelclean.arrays import Bools, Floats, Ints, Probs, Singles
from labelclean.calibration.checks import inspect
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.fit import NoiseFit, shrunk_correlation
from labelclean.calibration.judgement import Judgement, no_estimate, notes, rate_interval
from labelclean.calibration.noise_parameters import NoiseParameters
from labelclean.calibration.odds import (
    PATTERN_CLASSES,
    error_odds,
    fold_tables,
    free_rows,
    none_mass,
)
from labelclean.calibration.pattern import (
    choose_share,
    fit_pattern,
    pair_counts,
    start_matrix,
)
from labelclean.calibration.planted_mixture import PlantedMixture
from labelclean.calibration.pool import likely_weights, pool
from labelclean.calibration.transition import Transition

_ALIGNED_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Fusion:
    """How several class posteriors of N rows became one, and what judging it takes.

    Args:
        fold: (N,) int8; a row is judged by a matrix from the other folds.
        share: Share of even flips in the matrix; 1: no pattern is believed.
        weights: Source to its weight in the pool.
        held_out: (N, C) the pool of sources that did not see the row's label; None: all of them.
        distance: (N,) squared distance to the nearest class; None: not known.
        learnt: What planted rows say about log-odds of the held-out sources and the suspicions of
            a network that saw the label, in this order; None: no such network speaks.
        suspicions: (N, J) these suspicions.
    """

    fold: NDArray[np.int8]
    share: float
    weights: Mapping[str, float] = field(default_factory=dict)
    held_out: Singles | None = None
    distance: Singles | None = None
    learnt: PlantedMixture | None = None
    suspicions: Singles | None = None


def fuse_sources(
    sources: Mapping[str, Probs],
    label: Ints,
    fold: Ints,
    *,
    distance: Probs | None = None,
    verified: Bools | None = None,
) -> tuple[Singles, Fusion]:
    """Pool class posteriors with weights, and a belief in the matrix, that the labels choose.

    Args:
        sources: Name to (N, C) posteriors, none of which saw the row's own label.
        label: (N,) given labels.
        fold: (N,) 0 ... K-1.
        distance: (N,) squared distance to the nearest class; None: not known.
        verified: (N,) rows whose label is known to be right.

    Returns:
        (N, C) the pool, and how it came about.
    """
    rows = free_rows(len(label), verified)
    parts = [posterior[rows] for posterior in sources.values()]
    few, folds = label[rows], fold[rows]
    weights = np.full(len(parts), 1 / len(parts))
    share, pattern = 1.0, len(parts[0][0]) <= PATTERN_CLASSES
    start = start_matrix(parts[0].shape[1])
    table = fit_pattern(few, pool(parts, weights), 0.5 if pattern else 1.0, start)
    for _ in range(2):
        weights = likely_weights(parts, few, table, weights)
        pooled = pool(parts, weights)
        share = choose_share(few, pooled, folds) if pattern else 1.0
        table = fit_pattern(few, pooled, share, start)
    named = dict(zip(sources, weights.tolist(), strict=True))
    far = None if distance is None else np.asarray(distance, np.float32)
    fusion = Fusion(fold.astype(np.int8), share, named, None, far)
    return pool(list(sources.values()), weights), fusion


def judge_fused(
    label: Ints, probs: Singles, fusion: Fusion, verified: Bools | None = None
) -> Judgement:
    """Estimate for every row the probability that its given label is wrong.

    Args:
        label: (N,) given labels.
        probs: (N, C) the pool of all sources.
        fusion: How it came about.
        verified: (N,) rows whose label a person vouched for.
    """
    honest = probs if fusion.held_out is None else fusion.held_out
    seen = inspect(label, honest)
    disagreement = seen.disagreement
    if not seen.informative:
        return no_estimate(label, seen.p_given, disagreement)
    fold = np.asarray(fusion.fold, np.int64)
    doubtful = np.ones(len(label), bool) if verified is None else ~verified
    rows = free_rows(len(label), verified)
    tables = fold_tables(label[rows], honest[rows], fold[rows], fusion.share)
    rate, supported = _rate(label, honest, fold, tables, fusion, rows, doubtful)
    none = none_mass(fusion.distance, fusion.share, tables)
    odds, rival, share, stays = error_odds(label, probs, fold, tables, none)
    count = pair_counts(label[rows], honest[rows], tables.mean(axis=0))
    unsure = _unsure(count, fusion.share)[rival, label]
    ranked, sure = odds, expit(odds - unsure) * share
    if fusion.learnt is not None and fusion.suspicions is not None:
        apart, other, part, _ = error_odds(label, honest, fold, tables, none)
        ranked = fusion.learnt.log_odds(np.column_stack([apart, fusion.suspicions]))
        sure = np.where(other == rival, np.maximum(sure, expit(apart - unsure) * part), sure)
    log_odds = ranked + _shift(ranked[doubtful], rate)
    p_error = np.where(doubtful, expit(log_odds), 0.0)
    p_rival = p_error * share
    # Where none of the classes is likelier than the best other one, the label stays.
    moves = doubtful & (p_rival > 1 - p_error) & (stays < share / (1 + share))
    suggested = np.where(moves, rival, label)
    careful = np.minimum(p_rival, sure)
    p_suggested = np.where(moves, careful, 1 - p_error).astype(np.float32)
    size = probs.shape[1]
    pairs = np.divmod(np.arange(size * size), size)
    transition = Transition.from_counts(size, pairs, count.ravel())
    params = NoiseParameters(1.0, np.zeros(size), transition)
    # Where no pattern explains labels better than even flips, there is none to speak of.
    alignment = _alignment(count, honest[rows]) if fusion.share < 1 else 0.0
    fitted = NoiseFit(params, params, supported, 1.0, alignment, 1.0)
    rate = float(p_error.mean())
    return Judgement(
        np.where(doubtful, log_odds, -np.inf).astype(np.float32), p_error, suggested, p_suggested,
        rate, rate_interval(rate, supported, disagreement, len(label)), disagreement, fitted,
        notes(rate, supported, disagreement), (p_error * stays).astype(np.float32),
        bounded=True,
    )  # fmt: skip


def held_out_odds(label: Ints, given: Ints, probs: Singles, fusion: Fusion) -> Floats:
    """(N,) log-odds of an error by the held-out sources, were the labels others than the given.

    Args:
        label: (N,) the labels to doubt.
        given: (N,) the given labels, which the pattern is estimated from.
        probs: (N, C) the pool of the held-out sources.
        fusion: How it came about.
    """
    rows, fold = free_rows(len(given), None), np.asarray(fusion.fold, np.int64)
    tables = fold_tables(given[rows], probs[rows], fold[rows], fusion.share)
    return error_odds(label, probs, fold, tables, none_mass(fusion.distance, fusion.share, tables))[
        0
    ]


def _unsure(count: Floats, share: float) -> Floats:
    """(C, C) how far log-odds may be too high, as few rows were flipped so: 90 % of all cases."""
    known, flips = judge_constants(), count.sum() - np.trace(count)
    pattern, even = 1 / np.sqrt(np.maximum(count, 1e-9)), 1 / np.sqrt(max(flips, 1e-9))
    bound: Floats = known.interval_quantile * ((1 - share) * pattern + share * even)
    return bound


def _alignment(count: Floats, probs: Singles) -> float:
    """Say how far (C, C) expected flips follow what the posteriors (n, C) confuse."""
    few = probs[:_ALIGNED_ROWS].astype(np.float64) ** judge_constants().confusion_sharpness
    few /= few.sum(axis=1, keepdims=True)
    confused = few.T @ few
    off = 1 - np.eye(len(count))
    return shrunk_correlation(count * off, confused * off)


def _rate(
    label: Ints,
    probs: Singles,
    fold: Ints,
    tables: Floats,
    fusion: Fusion,
    rows: Ints,
    doubtful: Bools,
) -> tuple[float, float]:
    """Give the noise rate, and the part of it that the likelihood alone supports."""
    known = judge_constants()

    def mean_error(matrices: Floats, exponent: float = 1.0) -> float:
        odds = error_odds(label, probs, fold, matrices, None, exponent)[0]
        return float(expit(odds[doubtful]).mean())

    few, folds = label[rows], fold[rows]
    supported = even = sharp = mean_error(tables)
    if fusion.share < 1:
        even = mean_error(fold_tables(few, probs[rows], folds, 1.0))
        exponent = 1 + known.pattern_sharpening * (1 - fusion.share)
        surer = probs[rows].astype(np.float64) ** exponent
        surer /= surer.sum(axis=1, keepdims=True)
        sharp = mean_error(fold_tables(few, surer, folds, fusion.share), exponent)
    gate = even / (even + known.even_gate)
    rate = gate * sharp + (1 - gate) * even
    if fusion.learnt is not None:
        rate = (max(rate, fusion.learnt.least) + max(rate, fusion.learnt.rate)) / 2
    return rate, min(supported, even)


def _shift(odds: Floats, rate: float) -> float:
    """Give what to add to log-odds so that their probabilities average to the rate."""
    from scipy.optimize import brentq  # noqa: PLC0415 (not every command asks for it)

    goal = float(np.clip(rate, 1e-9, 1 - 1e-9))
    found: float = brentq(lambda move: float(expit(odds + move).mean()) - goal, -90.0, 90.0)
    return found
