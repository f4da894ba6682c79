"""The judge's constants in one frozen place: what each is, where it comes from, who chose it.

None is an option of a recipe: whoever changes one measures what that does, with
`labelclean benchmark constants`, which halves and doubles them one at a time. Sizes of tiles,
blocks and samples, which change speed and memory but no answer worth speaking of, stay where they
are used.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any, TypeVar

_Value = TypeVar("_Value", int, float, tuple[float, ...])


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a constant comes from.

    Args:
        source: Paper, study or rule; "a guess" where there is none.
        chosen_on: The data its value was chosen on; "no data" or "not known" where that is so.
    """

    source: str
    chosen_on: str


@dataclass(frozen=True, slots=True)
class Constant:
    """One constant and all that is known about it.

    Args:
        name: Its name in `JudgeConstants`.
        value: Its value.
        meaning: What it is.
        origin: Where it comes from.
        acts_on: What shows its effect: a bed of the benchmark, or "interval", "relabels", "loss"
            and "words" for what changes neither ranking nor rate.
        most: Largest value that makes sense, for shares and probabilities.
    """

    name: str
    value: int | float | tuple[float, ...]
    meaning: str
    origin: Origin
    acts_on: str
    most: float


_STUDY = Origin("calibration.md, section 2", "four probability files, 218 synthetic sets")
_ZOO = Origin("chosen by error of the noise rate", "four probability files, zoo with seeds 0 and 1")
_RANKING = Origin("ranking.md, section 1", "cifar10n-dev, by AP among about 150 variants")
_ALL_DEV = Origin(
    "chosen among about 15 rules while looking at AP and rate",
    "cifar10n, romans, birds, cifar100, dev halves, one seed",
)
_TABLES = Origin("measured", "digits, wine, breast cancer, one generated set; planted noise")
_DEFINITION = Origin("definition", "no data")
_GUESS = Origin("a guess", "not known")
_OUTLYING = Origin(
    "chosen by AP and rate", "cifar10n, romans, birds, cifar100, dev halves, one seed"
)


def _set(value: _Value, meaning: str, origin: Origin, acts_on: str, most: float = inf) -> _Value:
    """Declare a constant; see `Constant`."""
    about = {"meaning": meaning, "origin": origin, "acts_on": acts_on, "most": most}
    return field(default=value, metadata=about)


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeConstants:
    """All constants of the judge; `about_constants` tells what is known about each."""

    # The noise model, fitted to labels and probabilities by likelihood.
    floor: float = _set(1e-4, "least probability believed in, times classes", _STUDY, "probs")
    informative_errors: float = _set(
        2.0, "standard errors by which given labels must be likelier than drawn ones",
        Origin("calibration.md, section 6 (of the accuracy there)", "no data"), "probs")
    first_flips: float = _set(0.1, "share of flips the fit starts from", _STUDY, "probs", 0.9)
    prior_rows: float = _set(10.0, "rows' worth of the pooled pattern in every class of T",
                             _STUDY, "probs")
    honest_rows: float = _set(1.0, "rows' worth of belief in the given label in T", _STUDY, "probs")
    bias_ridge: float = _set(1.0, "precision of the class biases around 0", _STUDY, "probs")
    least_sharpness: float = _set(
        1.0, "the truth's least inverse temperature, unless the labels' own is less",
        _STUDY, "probs")
    sharpest: float = _set(8.0, "largest inverse temperature of a fit", _STUDY, "probs")
    vaguest: float = _set(0.05, "least inverse temperature of the given labels", _GUESS, "probs")
    first_inverse_temperature: float = _set(
        5.0, "where the fit starts; from below it can stall in one-way flips of two classes",
        Origin("chosen against stalling (calibration.md: 1.5)", "not known"), "probs")
    largest_step: float = _set(0.5, "largest Newton step of temperature and bias", _STUDY, "probs")
    settled: float = _set(1e-5, "change of the mean log-likelihood that ends a fit",
                          _STUDY, "probs")
    least_steps: int = _set(16, "steps of a fit that are always taken", _STUDY, "probs")
    most_steps: int = _set(100, "steps of a fit that are never exceeded", _STUDY, "probs")

    # How much surer of the truth than of the given label a model is taken to be.
    sharpening: float = _set(2.5, "inverse temperature of the truth, in that of the labels",
                             _STUDY, "probs")
    sharpening_by_alignment: float = _set(
        2.0, "the same, added where flips follow the model's own confusions", _STUDY, "probs")
    doubt: float = _set(0.01, "noise the likelihood must find to count for half (array mode)",
                        Origin(_ZOO.source + " (calibration.md: 0.03)", _ZOO.chosen_on), "probs")
    honest_model: float = _set(0.5, "label inverse temperature below which a model boasts",
                               _ZOO, "probs")
    honest_exponent: float = _set(2.0, "how fast sharpening fades below that", _ZOO, "probs")
    prior_alignment: float = _set(0.4, "alignment taken for granted", _STUDY, "probs", 1.0)
    prior_pairs: float = _set(6.0, "pairs of classes that speak for it", _STUDY, "probs")
    confusion_sharpness: float = _set(2.0, "power at which a model's confusions are counted",
                                      _STUDY, "probs")
    softness: float = _set(8.0, "divides log-odds so that suspicion keeps suspects apart",
                           _GUESS, "probs")
    unsupported: float = _set(
        0.5, "most probability of a suggestion that the likelihood alone does not share",
        _GUESS, "relabels", 1.0)

    # The interval of the noise rate.
    believed: float = _set(0.85, "share of the supported noise that is taken for certain",
                           Origin("chosen for 90 % coverage", _ZOO.chosen_on), "interval", 1.0)
    unidentified: float = _set(0.015, "what the interval allows beyond sampling",
                               Origin("chosen for 90 % coverage", _ZOO.chosen_on), "interval")
    interval_quantile: float = _set(1.645, "standard errors of a 90 % interval",
                                    _DEFINITION, "interval")
    interval_tail: float = _set(0.05, "each tail of the 90 % intervals of shares",
                                _DEFINITION, "interval", 0.49)

    # Correction by what people found (Platt's two parameters with a prior).
    answer_edge: float = _set(1e-4, "people err too: no row is surer before they speak",
                              _GUESS, "answers", 0.49)
    answer_shift_precision: float = _set(1.0, "precision of the shift around 0", _GUESS, "answers")
    answer_slope_precision: float = _set(4.0, "precision of the slope around 1", _GUESS, "answers")
    answer_least_slope: float = _set(0.05, "least slope: no order is turned", _GUESS, "answers")

    # Neighbours that join somebody's probabilities.
    blend_shares: tuple[float, ...] = _set(
        (0.0, 0.25, 0.5), "shares of the neighbours that are tried",
        Origin("a guess; the likelihood chooses among them", "not known"), "blend", 1.0)
    blend_neighbours: int = _set(50, "nearest rows that vote", _RANKING, "blend")
    blend_least_vote: float = _set(1e-3, "least vote of a class", _GUESS, "blend")
    neighbour_temperature: float = _set(0.05, "cosine that makes a vote weigh e times less",
                                        _RANKING, "features")

    # Several posteriors from features, fused.
    posterior_floor: float = _set(1e-4, "what a posterior of 0 is taken for", _RANKING, "features")
    heaviest: float = _set(8.0, "largest weight of a source in the pool", _GUESS, "features")
    choice_errors: float = _set(
        2.0, "standard errors by which uneven weights, or a pattern, must explain more",
        _ALL_DEV, "features")
    pattern_shares: tuple[float, ...] = _set(
        (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0), "shares of the even matrix that are tried",
        Origin("a grid; the likelihood chooses among them", "no data"), "features", 1.0)
    pattern_steps: int = _set(15, "EM steps of a matrix with fixed posteriors",
                              _ALL_DEV, "features")
    pattern_sharpening: float = _set(
        0.5, "how much surer of the truth than of the label, where flips have a pattern",
        _ALL_DEV, "features")
    even_gate: float = _set(
        0.001, "noise under the even matrix at which the evidence of noise counts for half",
        _ALL_DEV, "features")
    none_mass: float = _set(
        0.1, "weight of 'none of these' in even flips, for a row of median typicality",
        Origin("chosen by AP", "romans-dev"), "features")
    vote_floor: float = _set(0.003, "least vote of a class among the neighbours",
                             _ALL_DEV, "features")
    network_shares: tuple[float, ...] = _set(
        (0.0, 0.25, 0.5, 0.75, 1.0), "shares of the trained network that are tried",
        Origin("a grid; planted rows choose among them", "no data"), "network", 1.0)
    planted_ridge: float = _set(
        1e-3, "penalty of the slopes that planted rows give to standardised suspicions",
        Origin("chosen among three by rate and calibration",
               "romans, birds, 3,000 rows of cifar10n, dev halves, one seed"), "network", 1.0)
    kind_gain: float = _set(
        3.0, "log-likelihood that a further kind of planted errors must explain to be heard",
        Origin("20 to 1", "no data"), "network", 10.0)
    outliers_from: float = _set(
        0.005, "rate of other errors from which pictures of no class may count as wrong labels",
        _OUTLYING, "relabels", 1.0)
    outliers_share: float = _set(
        0.5, "share of the other errors that they must come to",
        _OUTLYING, "relabels", 10.0)
    planted_strange: float = _set(
        0.06, "share of rows whose pictures are scrambled to show none of the classes",
        _GUESS, "network", 0.3)
    components: int = _set(512, "principal components of the discriminant", _RANKING, "features")
    near_components: int = _set(256, "principal components of the neighbours", _RANKING, "features")
    neighbours: int = _set(50, "nearest rows that vote", _RANKING, "features")
    folds: int = _set(5, "folds of heads and matrices", _RANKING, "features")
    discriminant_folds: int = _set(20, "folds of the discriminant", _ALL_DEV, "features")
    transition_steps: int = _set(3, "EM steps of T after an epoch of the heads ('a few')",
                                 _RANKING, "features")
    shrinkages: tuple[float, ...] = _set(
        (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7), "shares of the sphere in the covariance, tried",
        Origin("a grid; the likelihood chooses among them", "no data"), "features", 1.0)
    least_scale: float = _set(0.05, "smallest scale of scores that is tried", _GUESS, "features")
    most_scale: float = _set(8.0, "largest scale of scores that is tried", _GUESS, "features")
    scales: int = _set(36, "scales that are tried, evenly in their logarithm", _GUESS, "features")
    planted: float = _set(0.1, "share of rows planted with flips of the data set's own pattern",
                          _GUESS, "loss", 0.5)

    # Heads that know the noise.
    head_q: float = _set(0.3, "exponent of the generalised cross entropy",
                         _RANKING, "features", 1.0)
    head_epochs: int = _set(20, "passes over the rows", _RANKING, "features")
    head_lr: float = _set(1e-3, "largest learning rate (AdamW, cosine)", _RANKING, "features")
    head_weight_decay: float = _set(5.0, "decoupled weight decay", _RANKING, "features")
    head_trusted: float = _set(0.8, "diagonal of the first T", _RANKING, "features", 0.99)
    head_first_estimate: int = _set(4, "epoch, from 0, after which T is estimated",
                                    _RANKING, "features")

    # Tables: few columns, few rows.
    table_lr: float = _set(3e-3, "largest learning rate of the heads", _TABLES, "table")
    table_weight_decay: float = _set(2.0, "weight decay of the heads", _TABLES, "table")
    random_features: int = _set(256, "random features, so that linear heads can bend",
                                _TABLES, "table")

    # Sentences and warnings.
    memorised: float = _set(1e-3, "disagreement below which labels look memorised", _GUESS, "words")
    certain: float = _set(0.98, "mean p(given) above which they do", _GUESS, "words", 1.0)
    memorised_rows: int = _set(100, "rows it takes to say so", _GUESS, "words")
    displaced: float = _set(0.5, "share of a class seen elsewhere that looks like swapped columns",
                            Origin("a majority", "no data"), "words", 1.0)
    displaced_rows: int = _set(5, "rows of a class it takes to say so", _GUESS, "words")
    weak_model: float = _set(0.25, "disagreement above which the model is called weak",
                             Origin("calibration.md, section 6", _STUDY.chosen_on), "words", 1.0)
    assumed_ratio: float = _set(2.0, "rate over supported noise that is worth a word",
                                _GUESS, "words")
    assumed_excess: float = _set(0.02, "and what it must exceed that by", _GUESS, "words")
    aligned: float = _set(0.55, "alignment from which errors follow the model's confusions",
                          Origin("calibration.md, section 2 (human noise: 0.63 to 0.9)",
                                 _STUDY.chosen_on), "words", 1.0)
    narrow: float = _set(0.05, "width under which an interval is never the first thing to say",
                         _GUESS, "words", 1.0)
    concentrated: float = _set(3.0, "times the even share that makes a pair a confused one",
                               _GUESS, "words")
    small_rate: float = _set(0.01, "rate under which all labels may be right", _GUESS, "words")
    least_flagged: float = _set(
        0.02, "p_error under which no row is flagged, whatever the cut", _GUESS, "words", 1.0)
    lonely: float = _set(0.2, "neighbours' vote under which a row is lonely", _GUESS, "words", 1.0)
# fmt: on


_IN_FORCE: ContextVar[JudgeConstants] = ContextVar("judge_constants", default=JudgeConstants())  # noqa: B039


def judge_constants() -> JudgeConstants:
    """Give the constants in force: the defaults, everywhere but inside `varied_constants`."""
    return _IN_FORCE.get()


@contextmanager
def varied_constants(varied: JudgeConstants) -> Iterator[None]:
    """Judge with other constants inside the block; for measuring what they do, nothing else."""
    token = _IN_FORCE.set(varied)
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


def about_constants() -> tuple[Constant, ...]:
    """Give every constant with what is known about it, in the order of `JudgeConstants`."""
    defaults = JudgeConstants()
    known: list[tuple[str, Any]] = [(one.name, one.metadata) for one in fields(JudgeConstants)]
    return tuple(Constant(name, getattr(defaults, name), **about) for name, about in known)
