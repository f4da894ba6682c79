"""What kind of noise it is: rates per class, the transition matrix, and a diagnosis in words."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, pdtr

from labelclean.arrays import Ints
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.judgement import Judgement
from labelclean.errors import DataError

MODEL_CONFIDENCE = 90
"""Percent; of the judge's own intervals."""


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """The estimated noise of a data set with C classes.

    Args:
        rate: Share of wrong labels.
        interval: 90 % interval of the rate.
        class_rate: (C,) share of wrong labels among the rows that carry a label; NaN without rows.
        class_interval: (C, 2) 90 % interval of each.
        transition: (C, C) P(given | true), rows true, each sums to 1.
        diagnosis: Short sentences.
    """

    rate: float
    interval: tuple[float, float]
    class_rate: NDArray[np.float64]
    class_interval: NDArray[np.float64]
    transition: NDArray[np.float64]
    diagnosis: tuple[str, ...]


def noise_model(
    judgement: Judgement, label: Ints, classes: tuple[object, ...], conflicts: int = 0
) -> NoiseModel:
    """Describe the noise; needs memory for C x C.

    Args:
        judgement: What `judge` said about the rows.
        label: (N,) the given labels.
        classes: (C,) names, for the diagnosis.
        conflicts: Rows with a near-identical twin of another label, where they were counted.

    Raises:
        DataError: The judgement holds no estimate.
    """
    if judgement.fitted is None or judgement.noise_rate is None:
        raise DataError("there is no noise estimate to describe: " + " ".join(judgement.notes))
    size = len(classes)
    counted = judgement.fitted.params.transition
    matrix = counted.matrix()
    count = np.bincount(label, minlength=size)
    wrong = np.bincount(label, judgement.p_error, size)
    class_rate = np.where(count > 0, wrong / np.maximum(count, 1), np.nan)
    prior = counted.mass / max(counted.mass.sum(), 1e-12)
    joint = (matrix * prior[:, None]).T
    return NoiseModel(
        rate=judgement.noise_rate,
        interval=judgement.interval,
        class_rate=class_rate,
        class_interval=_interval(np.nan_to_num(class_rate), count),
        transition=matrix,
        diagnosis=_diagnosis(judgement, joint, classes, conflicts, len(label)),
    )


def _interval(share: NDArray[np.float64], rows: Ints) -> NDArray[np.float64]:
    """90 % interval of shares seen in so many rows (Jeffreys); last axis low, high."""
    hits, tail = share * rows, judge_constants().interval_tail
    low = betaincinv(hits + 0.5, rows - hits + 0.5, tail)
    high = betaincinv(hits + 0.5, rows - hits + 0.5, 1 - tail)
    return np.stack([np.minimum(low, share), np.maximum(high, share)], axis=-1)


def _diagnosis(
    judgement: Judgement,
    joint: NDArray[np.float64],
    classes: tuple[object, ...],
    conflicts: int,
    count: int,
) -> tuple[str, ...]:
    """Say what the data shows and no more."""
    fitted, rate = judgement.fitted, judgement.noise_rate or 0.0
    low = judgement.interval[0]
    said = [rate_headline(rate, judgement.interval, MODEL_CONFIDENCE)]
    if conflicts:
        said.append(
            f"{conflicts} of {count} rows have a near-identical twin with another label: of each "
            "such pair at least one label is wrong."
        )
    if may_be_clean(rate, judgement.interval):
        if not (judgement.p_error > 0.5).any():
            said.append("The labels may as well all be right.")
    elif fitted is not None and len(classes) > 2 and low > 0:
        said += _pattern(fitted.alignment, joint, classes, rate * count)
    return (*said, *judgement.notes)


def _pattern(
    rho: float, joint: NDArray[np.float64], classes: tuple[object, ...], wrong: float
) -> list[str]:
    """Name a pattern where there is evidence for one; say nothing where there is none.

    Args:
        rho: How far flips follow the model's own confusions.
        joint: (C, C) share of rows with a given and a true class.
        classes: (C,) names.
        wrong: Expected number of wrong labels.
    """
    known, off = judge_constants(), joint.copy()
    np.fill_diagonal(off, 0.0)
    off /= max(off.sum(), 1e-12)
    size = len(classes)
    even = 1 / (size * (size - 1))
    order = np.argsort(-off, axis=None)[:3]
    # A pair of classes counts where it has more errors than even flips would ever bring it.
    usual = _poisson_quantile(1 - known.interval_tail / (size * (size - 1)), wrong * even)
    pairs = [
        divmod(int(at), size)
        for at in order
        if off.flat[at] > known.concentrated * even and off.flat[at] * wrong > usual
    ]
    named = ", ".join(f"{classes[true]} given as {classes[given]}" for given, true in pairs)
    if rho >= known.aligned:
        tail = f" Most frequent: {named}." if named else ""
        return ["Errors follow what the model itself confuses, as people's errors do." + tail]
    return [f"Errors depend on the class; most frequent: {named}."] if named else []


def _poisson_quantile(share: float, mean: float) -> int:
    """Give the least count that a Poisson variable does not exceed with this probability."""
    # scipy.stats has it too, and takes most of a second to import.
    low, high = 0, 1
    while pdtr(high, mean) < share:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if pdtr(middle, mean) >= share else (middle + 1, high)
    return low


def rate_headline(rate: float, interval: tuple[float, float], confidence: int) -> str:
    """Say how many labels are wrong: the interval first where it is wide, else the rate.

    Args:
        rate: The best guess.
        interval: Its bounds.
        confidence: How sure these are, in percent.
    """
    low, high = interval
    if is_wide(rate, interval):
        return (
            f"Between {low:.1%} and {high:.1%} of the labels look wrong ({confidence} % interval); "
            f"the best guess is {rate:.1%}."
        )
    return (
        f"About {rate:.1%} of the labels look wrong ({confidence} % interval {low:.1%} to "
        f"{high:.1%})."
    )


def is_wide(rate: float, interval: tuple[float, float]) -> bool:
    """Tell whether an interval says more about a rate than the rate itself."""
    return interval[1] - interval[0] > max(rate, judge_constants().narrow)


def may_be_clean(rate: float, interval: tuple[float, float]) -> bool:
    """Tell whether nothing speaks for noise beyond single rows."""
    return interval[0] <= 0 and rate < judge_constants().small_rate
