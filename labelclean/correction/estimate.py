"""What answers tell: the noise rate, how often automatic relabels are right, whether to go on.

Bounds. Inside a stratum the completed blocks are a simple random sample without replacement, so
the number of wrong labels has exact (hypergeometric) bounds; what is known of every other answered
row narrows them further. The bounds of the strata are added. For the sum to hold with 95 %, each
side's 2.5 % are divided among the strata by their size: by the union bound the sum is conservative,
never too narrow. "Unsure" and "drop" count as right for the lower and as wrong for the upper bound.

Point. N mean(p) + N mean(wrong - p) over the sample: unbiased whatever p_error is worth, and
steadier than the plain share where it is worth something. A stratum without a sample counts what
was found in it, and the corrected p_error of the rest.

Enough. Looking again and again until a bound looks good would make it too optimistic. So whether
enough of the automatic relabels were checked is only asked at sizes fixed beforehand (the smallest
that could prove the stated precision, then twice as many, ...), with levels 5 % / 2, / 4, ... that
add up to 5 %.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Floats
from labelclean.calibration.bounds import fewest, more_than, most, plausible_at_most, smallest_proof
from labelclean.correction.sample import BLOCK, KNOWN, NOWHERE, RELABELLED, STRATA, Plan

LEVEL = 0.05
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Answers:
    """What people said about M rows; NaN where nobody did, or nobody could tell.

    Args:
        answered: (M,) bool, whether there is a decision at all.
        wrong: (M,) 1 where the given label is wrong, 0 where it is right.
        right: (M,) 1 where the suggested label is right, 0 where it is wrong.
    """

    answered: NDArray[np.bool_]
    wrong: Floats
    right: Floats


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is known after so many answers.

    Args:
        answers: Rows with a decision.
        noise_rate: Share of wrong labels among the readable audited rows.
        noise_interval: Its bounds, 95 %.
        relabel_precision: Share of right automatic relabels; None before any was sampled.
        relabel_interval: Its bounds, 95 %.
        enough: Whether more answers are not needed for the stated precision.
        message: All that in a sentence or two.
    """

    answers: int
    noise_rate: float
    noise_interval: Interval
    relabel_precision: float | None
    relabel_interval: Interval | None
    enough: bool
    message: str


def estimate(
    plan: Plan,
    p_error: Floats,
    answers: Answers,
    *,
    precision: float,
    guess: Floats | None = None,
) -> Estimate:
    """Estimate from all answers so far.

    Args:
        plan: The sample.
        p_error: (M,) the run's own probabilities, fixed before the first answer.
        answers: What people said.
        precision: What automatic relabels are promised to have at least.
        guess: (M,) p_error corrected by the answers, for strata without a sample; None: p_error.
    """
    blocks = plan.complete(answers.answered)
    rate, interval = _noise(plan, blocks, p_error, answers, p_error if guess is None else guess)
    sample = _sampled(plan, blocks, answers, RELABELLED)
    right, between = _relabels(plan, sample, answers)
    if plan.size[RELABELLED]:
        enough, message = _judge_relabels(plan, sample, answers, precision)
    else:
        enough, message = _judge_rate(interval, precision)
    if not enough and not blocks:
        message += ' Only answers in the order "most informative first" count towards it.'
    count = int(answers.answered.sum())
    said = [f"{count} answers: {_share(rate, interval)} of the labels are wrong."]
    if right is not None and between is not None:
        said.append(f"{_share(right, between)} of the automatic relabels are right.")
    message = " ".join([*said, message])
    return Estimate(count, rate, interval, right, between, enough, message)


def _share(value: float, interval: Interval) -> str:
    return f"{value:.1%} ({interval[0]:.1%} to {interval[1]:.1%}, 95 % confidence)"


def _sampled(plan: Plan, blocks: int, answers: Answers, stratum: int) -> NDArray[np.int64]:
    """Positions of a stratum's sample, in random order; all of it once all of it is answered."""
    rows = np.flatnonzero(plan.stratum == stratum)
    if not answers.answered[rows].all():
        rows = rows[plan.block[rows] < blocks]
    return rows[np.argsort(plan.place[rows])]


def _noise(
    plan: Plan, blocks: int, p_error: Floats, answers: Answers, corrected: Floats
) -> tuple[float, Interval]:
    known = answers.wrong[plan.stratum == KNOWN]
    low = point = float(np.nansum(known))
    high = low + float(np.isnan(known).sum())
    point += 0.5 * (high - low)
    rows = int(np.count_nonzero(plan.stratum != NOWHERE))
    if not rows:
        return 0.0, (0.0, 1.0)
    for stratum in STRATA:
        size = int(plan.size[stratum])
        if not size:
            continue
        members = plan.stratum == stratum
        sample = _sampled(plan, blocks, answers, stratum)
        tail = LEVEL / 2 * size / int(plan.size.sum())
        below, above = _count(answers.wrong[sample], answers.wrong[members], size, tail)
        low, high = low + below, high + above
        seen = sample[np.isfinite(answers.wrong[sample])]
        if not len(seen):
            found = answers.wrong[members]
            point += float(np.where(np.isfinite(found), found, _likely(corrected[members])).sum())
            continue
        off = answers.wrong[seen] - _likely(p_error[seen])
        point += size * float(_likely(p_error[members]).mean() + off.mean())
    point = min(max(point, low), high)
    return point / rows, (low / rows, high / rows)


def _likely(p_error: Floats) -> Floats:
    return np.nan_to_num(p_error, nan=0.5)


def _relabels(
    plan: Plan, sample: NDArray[np.int64], answers: Answers
) -> tuple[float | None, Interval | None]:
    right = answers.right[sample]
    if not np.isfinite(right).any():
        return None, None
    size = int(plan.size[RELABELLED])
    everything = answers.right[plan.stratum == RELABELLED]
    low, high = (count / size for count in _count(right, everything, size, LEVEL / 2))
    # What was found outside the sample bounds the point, too.
    return min(max(float(np.nanmean(right)), low), high), (low, high)


def _count(sample: Floats, everything: Floats, size: int, tail: float) -> tuple[int, int]:
    """Bound how many of `size` rows are marked; 1, 0 or NaN for the sample and for all rows."""
    marked = int(np.nansum(sample))
    perhaps = marked + int(np.isnan(sample).sum())
    # What was found outside the sample is no estimate but known.
    least, largest = int(np.nansum(everything)), size - int((everything == 0).sum())
    low = fewest(marked, len(sample), size, tail)
    high = most(perhaps, len(sample), size, tail)
    return min(max(low, least), largest), min(max(high, least), largest)


def _judge_relabels(
    plan: Plan, sample: NDArray[np.int64], answers: Answers, precision: float
) -> tuple[bool, str]:
    size, allowed = int(plan.size[RELABELLED]), 1 - precision
    look, level = min(size, smallest_proof(allowed, size, LEVEL / 2)), LEVEL / 2
    while look <= len(sample):
        right = answers.right[sample[:look]]
        surely, unclear = int((right == 0).sum()), int(np.isnan(right).sum())
        if plausible_at_most(allowed, surely + unclear, look, size, level):
            return True, (
                f"Enough to take the automatic relabels over: at least {precision:.0%} of them are "
                "right. It says nothing about the rows to review, which still need a person."
            )
        if more_than(allowed, surely, look, size, level):
            return True, (
                "Enough to know that the automatic relabels cannot be taken over as they are: "
                f"fewer than {precision:.0%} of them are right. Look at all of them, or export "
                "with --policy keep."
            )
        if look == size:
            return True, (
                "Enough for the automatic relabels: every one was looked at, some remain unclear."
            )
        look, level = min(size, 2 * look), level / 2
    blocks = -(-(look - len(sample)) // int(plan.share[RELABELLED]))
    return False, (
        f"About {blocks * BLOCK} more answers until it may be known whether {precision:.0%} of the "
        "automatic relabels are right."
    )


def _judge_rate(interval: Interval, precision: float) -> tuple[bool, str]:
    margin = (interval[1] - interval[0]) / 2
    if margin <= 1 - precision:
        return True, (
            f"Enough for the noise rate: it is known to {margin:.1%} on either side. Nothing was "
            "relabelled automatically, so there is nothing else to prove."
        )
    return False, (
        f"Nothing was relabelled automatically. The noise rate is known to {margin:.1%} on either "
        f"side; go on until that is {1 - precision:.0%}."
    )
