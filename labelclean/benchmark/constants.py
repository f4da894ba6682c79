"""What the judge's constants do: each halved and doubled, on beds that need no files.

A constant is varied only on the bed where it acts: out-of-fold probabilities of the zoo, the same
after people answered, the same joined by neighbours, features taken for a backbone's, and tables.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from labelclean.arrays import Floats, Ints
from labelclean.benchmark import metrics
from labelclean.benchmark.zoo import ZooSet, add_noise, data_sets, zoo_case
from labelclean.calibration.answers import recalibrate
from labelclean.calibration.blend import with_neighbours
from labelclean.calibration.constants import (
    Constant,
    JudgeConstants,
    about_constants,
    varied_constants,
)
from labelclean.calibration.judgement import Judgement, judge

_ANSWERS = 50  # of the most suspect rows, before people's answers are taken into account
PROBABILITY_SETS = (
    ("digits", "none", "lr"), ("digits", "inst-10", "rf"), ("cancer", "sym-20", "nb"),
    ("cancer", "sym-5", "lr"), ("two_hard", "sym-20", "rf"), ("three_rare", "asym-30", "lr"),
    ("five", "inst-25", "rf"), ("twenty", "cc-20", "knn"),
)  # fmt: skip
BLENDED_SETS = (
    ("digits", "sym-20", "lr"),
    ("five", "inst-25", "rf"),
    ("three_rare", "asym-30", "lr"),
)
FEATURE_SETS = (("digits", "sym-20"), ("digits", "inst-10"), ("five", "asym-30"))
TABLE_SETS = (("digits", "inst-10"), ("wine", "sym-20"), ("five", "sym-20"))


@dataclass(frozen=True, slots=True)
class TrialQuality:
    """How well one labelled set was judged: AP is NaN where no label is wrong."""

    ap: float
    rate_error: float


@dataclass(frozen=True, slots=True)
class ConstantEffect:
    """What became of a bed when one constant was halved or doubled.

    Args:
        value: The value that was tried.
        ap: Mean change of average precision.
        rate_error: Mean change of the error of the noise rate.
    """

    value: int | float | tuple[float, ...]
    ap: float
    rate_error: float


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """A constant, and what half and double of it do; None where it changes neither number."""

    constant: Constant
    half: ConstantEffect | None
    double: ConstantEffect | None


@dataclass(frozen=True, slots=True)
class ConstantTable:
    """All constants, and how well the beds are judged without any change.

    Args:
        usual: Name of a bed to its mean quality, and the number of its sets.
        rows: Every constant with its effects.
    """

    usual: Mapping[str, tuple[TrialQuality, int]]
    rows: tuple[Sensitivity, ...]


Trial = Callable[[], TrialQuality]
Beds = Mapping[str, Sequence[Trial]]


def make_beds(seed: int = 0, files: Mapping[str, ZooSet] | None = None) -> Beds:
    """Draw noise and train the models of the probabilities once; what is given judges when called.

    Args:
        seed: Seed of all planted noise.
        files: Further sets of probabilities.
    """
    x = {name: held for name, (held, _) in data_sets().items()}
    cases = [zoo_case(*which, seed) for which in PROBABILITY_SETS] + list((files or {}).values())
    blended = [zoo_case(*which, seed) for which in BLENDED_SETS]
    return {
        "probs": [partial(_plain, case) for case in cases],
        "answers": [partial(_answered, case) for case in cases],
        "blend": [partial(_blended, case, x[case.data]) for case in blended],
        "features": [_features(which, seed, scaled=True) for which in FEATURE_SETS],
        "table": [_features(which, seed, scaled=False) for which in TABLE_SETS],
    }


def _judged(case: ZooSet, judgement: Judgement) -> TrialQuality:
    wrong = case.label != case.true
    # Where the judge declines to answer it counts as an estimate of 0.
    rate = judgement.noise_rate or 0.0
    return TrialQuality(
        metrics.average_precision(wrong, judgement.suspicion), abs(rate - float(wrong.mean()))
    )


def _plain(case: ZooSet) -> TrialQuality:
    return _judged(case, judge(case.label, case.probs))


def _answered(case: ZooSet) -> TrialQuality:
    judgement, wrong = judge(case.label, case.probs), case.label != case.true
    if judgement.noise_rate is None:
        return _judged(case, judgement)
    p_error = judgement.p_error.astype(np.float64)
    asked = np.argsort(-p_error, kind="stable")[:_ANSWERS]
    rate = float(recalibrate(p_error[asked], wrong[asked])(p_error).mean())
    return replace(_judged(case, judgement), rate_error=abs(rate - float(wrong.mean())))


def _blended(case: ZooSet, features: Floats) -> TrialQuality:
    probs, _, _ = with_neighbours(case.label, case.probs, features)
    return _judged(case, judge(case.label, probs))


def _features(which: tuple[str, str], seed: int, *, scaled: bool) -> Trial:
    from labelclean.estimators.evidence import from_features, with_random_features  # noqa: PLC0415
    from labelclean.estimators.inputs import Labelled  # noqa: PLC0415

    name, noise = which
    x, true = data_sets()[name]
    size = int(true.max()) + 1
    label: Ints = add_noise(noise, x, true, size, np.random.default_rng([seed, len(name), size]))
    known = Labelled(label, np.ones(len(label)), size)
    if scaled:  # and wide, so that the number of principal components matters
        x = with_random_features(x, known.weight, seed)
    case = ZooSet(name, noise, "features", label, true, x)
    return lambda: _judged(case, from_features(x, known, seed=seed, scaled=scaled).judgement)


def half_and_double(constant: Constant) -> tuple[Any, Any]:
    """Give half and double the value, no larger than makes sense; whole numbers stay whole."""
    value = constant.value
    if isinstance(value, tuple):
        return tuple(v / 2 for v in value), tuple(min(2 * v, constant.most) for v in value)
    if isinstance(value, int):
        return max(1, value // 2), 2 * value
    return value / 2, min(2 * value, constant.most)


def measure_constants(beds: Beds, watch: Callable[[str], None] = lambda _: None) -> ConstantTable:
    """Measure every constant on its bed.

    Args:
        beds: What `make_beds` gives.
        watch: Told the name of every constant that is done.
    """
    usual = {name: [trial() for trial in trials] for name, trials in beds.items()}
    rows = []
    for constant in about_constants():
        effects: list[ConstantEffect | None] = [None, None]
        if constant.acts_on in beds:
            before, trials = usual[constant.acts_on], beds[constant.acts_on]
            effects = [_effect(constant, v, trials, before) for v in half_and_double(constant)]
        rows.append(Sensitivity(constant, *effects))
        watch(constant.name)
    return ConstantTable(
        {name: (_mean(held), len(held)) for name, held in usual.items()}, tuple(rows)
    )


def _effect(
    constant: Constant, value: Any, trials: Sequence[Trial], usual: Sequence[TrialQuality]
) -> ConstantEffect:
    changed: dict[str, Any] = {constant.name: value}
    with varied_constants(JudgeConstants(**changed)):
        now = [trial() for trial in trials]
    return ConstantEffect(
        value,
        float(np.nanmean([new.ap - old.ap for new, old in zip(now, usual, strict=True)])),
        float(np.mean([n.rate_error - o.rate_error for n, o in zip(now, usual, strict=True)])),
    )


def _mean(held: Sequence[TrialQuality]) -> TrialQuality:
    return TrialQuality(
        float(np.nanmean([one.ap for one in held])),
        float(np.mean([one.rate_error for one in held])),
    )
