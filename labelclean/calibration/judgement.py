"""The judge in pure array mode: labels and probabilities in, error probabilities and a rate out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Bools, Ints, Probs, Singles
from labelclean.calibration.checks import Inspected, inspect
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.fit import NoiseFit, choose_rows, fit
from labelclean.calibration.posterior import score, sigmoid


@dataclass(frozen=True, slots=True)
class Judgement:
    """What labels and probabilities say about N rows, C classes.

    Args:
        log_odds: (N,) log odds that the given label is wrong: the ranking, without ties.
        p_error: (N,) calibrated probability that the given label is wrong, float32 or float64; NaN
            without estimate.
        suggested: (N,) most probable true class.
        p_suggested: (N,) its probability, on the careful side: see `judge`.
        noise_rate: Mean of p_error; None where the probabilities carry no information.
        interval: 90 % interval of the rate, (0, 1) without estimate.
        disagreement: Share of rows whose most probable class is not the given label.
        fitted: The model behind it; None without estimate.
        notes: What a reader should know before trusting the numbers.
        p_none: (N,) probability that the row shows none of the classes; None: not asked.
        bounded: Whether p_suggested are lower bounds.
    """

    log_odds: NDArray[np.float32]
    p_error: NDArray[np.floating]
    suggested: Ints
    p_suggested: NDArray[np.float32]
    noise_rate: float | None
    interval: tuple[float, float]
    disagreement: float
    fitted: NoiseFit | None
    notes: tuple[str, ...]
    p_none: NDArray[np.float32] | None = None
    bounded: bool = False

    @property
    def suspicion(self) -> Singles:
        """(N,) the ranking on a scale from 0 to 1."""
        return suspicion(self.log_odds)


def suspicion(log_odds: Singles, out: Singles | None = None) -> Singles:
    """(N,) log-odds on a scale from 0 to 1 that keeps the most suspect rows apart."""
    return sigmoid(np.divide(log_odds, np.float32(judge_constants().softness), out=out), out)


def judge(
    label: Ints, probs: Probs, seen: Inspected | None = None, verified: Bools | None = None
) -> Judgement:
    """Estimate for every row the probability that its given label is wrong.

    Args:
        label: (N,) int64 given labels.
        probs: (N, C) out-of-sample probabilities; may be memory-mapped, is read in tiles.
        seen: What `inspect` found in the probabilities, where the caller has it already.
        verified: (N,) rows whose label a person vouched for.
    """
    seen = seen or inspect(label, probs)
    disagreement = seen.disagreement
    if not seen.informative:
        return no_estimate(label, seen.p_given, disagreement)
    fitted = fit(label, probs, choose_rows(len(label)), verified)
    posterior = score(label, probs, fitted.params)
    log_odds, p_error, suggested = posterior.log_odds, posterior.p_error, posterior.suggested
    moved, p_moved = posterior.moved, posterior.p_moved
    if fitted.sharpening > 1 and len(moved):
        # Half-way between what the likelihood alone supports and the best guess of the rate: the
        # sharpened model is right on average and too sure of single suggestions.
        careful = score(label, probs, fitted.likelihood, fitted.params, rows=moved)
        same = np.flatnonzero(careful.suggested[careful.moved] == suggested[moved[careful.moved]])
        p_moved = np.minimum(np.float32(judge_constants().unsupported), p_moved)
        p_moved[careful.moved[same]] = careful.p_moved[same]
    p_suggested = np.subtract(np.float32(1), p_error)
    p_suggested[moved] = p_moved
    if verified is not None and verified.any():
        log_odds = np.where(verified, np.float32(-np.inf), log_odds)
        p_error = np.where(verified, 0.0, p_error)
        suggested = np.where(verified, label, suggested)
        p_suggested = np.where(verified, np.float32(1), p_suggested)
    rate = float(p_error.mean(dtype=np.float64))
    return Judgement(
        log_odds, p_error, suggested, p_suggested, rate,
        rate_interval(rate, fitted.supported, disagreement, len(label)), disagreement, fitted,
        notes(rate, fitted.supported, disagreement),
    )  # fmt: skip


def rate_interval(
    rate: float, supported: float, disagreement: float, count: int
) -> tuple[float, float]:
    """Bracket the rate: from what the likelihood alone supports to every disagreement.

    Between the two lies what the data cannot decide (the model's doubt or the label's fault);
    sampling comes on top. Checked for 90 % coverage on the zoo, not derived.
    """
    known = judge_constants()
    low, high = known.believed * min(rate, supported), max(rate, disagreement)
    errors = [np.sqrt(max(p * (1 - p), 1 / count) / count) for p in (low, high)]
    sampling = [known.interval_quantile * error for error in errors]
    return (
        float(max(0.0, low - known.unidentified - sampling[0])),
        float(min(1.0, high + known.unidentified + sampling[1])),
    )


def notes(rate: float, supported: float, disagreement: float) -> tuple[str, ...]:
    """Say what a reader should know before trusting a rate."""
    known, said = judge_constants(), []
    if disagreement > known.weak_model:
        said.append(
            f"The model disagrees with {disagreement:.0%} of the labels. A weak model and wrong "
            "labels look alike from here: read the interval, not only the rate."
        )
    if rate > known.assumed_ratio * supported + known.assumed_excess:
        said.append(
            f"The likelihood alone supports {supported:.1%} wrong labels; the rest of the estimate "
            "rests on the assumption that the model is surer of the truth than it says."
        )
    return tuple(said)


def no_estimate(label: Ints, given: Singles, disagreement: float) -> Judgement:
    """Give the judgement of probabilities that carry no information: nothing is flagged."""
    count = len(label)
    return Judgement(
        log_odds=-given,
        p_error=np.full(count, np.nan),
        suggested=label,
        p_suggested=given,
        noise_rate=None,
        interval=(0.0, 1.0),
        disagreement=disagreement,
        fitted=None,
        notes=(
            "The predictions match the labels no better than chance: no estimate is possible and "
            "nothing is flagged. Check the order of the columns and how the model was trained.",
        ),
    )
