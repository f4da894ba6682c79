"""Noise that depends on the sample: on its features, or on what a model finds hard about it."""

import numpy as np

from labelclean.benchmark.injection import (
    Injection,
    check_choice,
    exact_count,
    measure_injection,
    rows_by_class,
)
from labelclean.errors import ConfigError, DataError, shortlist

FEATURE_VARIANTS = ("parts", "single")
PMD_VARIANTS = ("pmd1", "pmd2", "pmd3")
PROBABILITY_VARIANTS = ("confidence", *PMD_VARIANTS)
PIECE = 10_000
_SPREAD = 0.1  # of the flip rates of single samples, the same in both papers
INSTANCE_VARIANTS = FEATURE_VARIANTS + PROBABILITY_VARIANTS


def instance(
    label: np.ndarray,
    num_classes: int,
    rate: float,
    rng: np.random.Generator,
    features: np.ndarray | None = None,
    probs: np.ndarray | None = None,
    variant: str = "parts",
    factor: float | None = None,
) -> Injection:
    """Flip labels depending on the sample itself.

    Args:
        label: (N,) clean labels.
        num_classes: C.
        rate: Expected share of flipped labels; for "confidence" the exact share.
        rng: Where the draws come from.
        features: (N, S) for "parts" and "single".
        probs: (N, C) p(class | x) of a model trained on clean labels, for the others.
        variant: "parts" (Xia et al. 2020) and "single" (CORES) see `by_features`; "confidence"
            (SEAL) see `by_confidence`; "pmd1" to "pmd3" (PLC) see `by_margin`.
        factor: Divisor of `by_margin`; None: found so that `rate` is met.
    """
    check_choice("variant", variant, INSTANCE_VARIANTS)
    if variant in FEATURE_VARIANTS:
        table = _table("features", features, variant, len(label))
        noisy = by_features(label, num_classes, rate, rng, table, variant == "single")
        return measure_injection(label, noisy, num_classes, rate)
    table = _probabilities(_table("probs", probs, variant, len(label)), num_classes)
    if variant == "confidence":
        return measure_injection(label, by_confidence(label, rate, table), num_classes, rate)
    return measure_injection(
        label, by_margin(label, rate, rng, table, variant, factor), num_classes, rate
    )


def by_features(
    label: np.ndarray,
    num_classes: int,
    rate: float,
    rng: np.random.Generator,
    features: np.ndarray,
    single: bool,
) -> np.ndarray:
    """Flip to the class that a random linear view of the features resembles.

    Each sample has its own flip rate q from N(rate, 0.1^2) truncated to [0, 1]. With W_y of
    shape (S, C) standard normal, a = x W_y, a_y = -inf: P = q softmax(a), P_y = 1 - q.

    Papers: Xia et al., Part-dependent Label Noise, NeurIPS 2020; Cheng et al., CORES, ICLR 2021
    (`single`: one W for all classes). The truncation lifts the mean at rates near 0 and lowers it
    near 1; a rate of exactly 0 flips nothing here.

    Args:
        label: (N,) clean labels.
        num_classes: C.
        rate: Mean flip rate before truncation.
        rng: Where the draws come from.
        features: (N, S), used as they are: their scale sets how sharp the softmax is.
        single: One W instead of one per class.

    Returns:
        (N,) int64 noisy labels.
    """
    if rate == 0.0:
        return label.copy()
    flip_rate = truncated_normal(rate, len(label), rng)
    # Two draws per sample, whether it flips and where to, keep the first exact however
    # small the softmax of a class is.
    flips = rng.random(len(label)) < flip_rate
    uniform = rng.random(len(label))
    shape = (features.shape[1], num_classes)
    shared = rng.standard_normal(shape) if single else None
    noisy = label.copy()
    for code, members in enumerate(rows_by_class(label, num_classes)):
        # One W at a time: all of them are C * S * C numbers. Drawn even for a class without
        # samples, so that the other classes' noise does not depend on it.
        view = rng.standard_normal(shape) if shared is None else shared
        rows = members[flips[members]]
        # In pieces: a row of C probabilities per sample of a large class would fill the memory.
        for part in np.array_split(rows, len(rows) // PIECE + 1):
            noisy[part] = _resembled(features[part], view, code, uniform[part])
    return noisy


def _resembled(
    features: np.ndarray, view: np.ndarray, code: int, uniform: np.ndarray
) -> np.ndarray:
    """Draw a class other than `code` by the softmax of features (n, S) times view (S, C)."""
    scores = features.astype(np.float64) @ view
    scores[:, code] = -np.inf
    cumulative = np.cumsum(np.exp(scores - scores.max(axis=1, keepdims=True)), axis=1)
    # Divided by its own end, a sum is exactly 1 and no draw falls behind the last class.
    ends = cumulative / cumulative[:, -1:]
    return np.asarray((ends <= uniform[:, None]).sum(axis=1))


def truncated_normal(mean: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw (count,) values from N(mean, 0.1^2) truncated to [0, 1], by drawing again."""
    values = rng.normal(mean, _SPREAD, count)
    while len(outside := np.flatnonzero((values < 0.0) | (values > 1.0))):
        values[outside] = rng.normal(mean, _SPREAD, len(outside))
    return values


def by_confidence(label: np.ndarray, rate: float, probs: np.ndarray) -> np.ndarray:
    """Flip exactly the int(rate N) samples with the best wrong class, to that class.

    Nothing is drawn: the noise follows from the probabilities; ties go to the lower row.

    Paper: Chen et al., Beyond Class-Conditional Assumption (SEAL), AAAI 2021.

    Args:
        label: (N,) clean labels.
        rate: Share of flipped labels.
        probs: (N, C), there the mean of the softmax over the epochs of a model trained on clean
            labels.

    Returns:
        (N,) int64 noisy labels.
    """
    wrong, score = _best_wrong(label, probs)
    chosen = np.argsort(-score, kind="stable")[: exact_count(rate, len(label))]
    noisy = label.copy()
    noisy[chosen] = wrong[chosen]
    return noisy


def by_margin(
    label: np.ndarray,
    rate: float,
    rng: np.random.Generator,
    probs: np.ndarray,
    variant: str,
    factor: float | None,
) -> np.ndarray:
    """Flip to the runner-up the more often, the closer it is: polynomial margin diminishing noise.

    With the margin g = max(p_y - p_s, 0) to the best wrong class s, the label is kept with
    probability min(1, (1 - f) / factor); f is 0.5 - 0.5 g^2 (pmd1), 1 - g^3 (pmd2) or
    1 - (g^3 + g^2 + g) / 3 (pmd3).

    Paper: Zhang et al., Progressive Label Correction (PLC), ICLR 2021, factor 1.2. Ours: the paper
    first replaces the clean labels by the model's, so that its top class is the label; here the
    label stays the truth. `factor` is tuned to `rate`, as the paper does for 35 % and 70 %.

    Args:
        label: (N,) clean labels.
        rate: Expected share of flipped labels; not used when `factor` is given, except that 0
            flips nothing.
        rng: Where the draws come from.
        probs: (N, C).
        variant: "pmd1", "pmd2" or "pmd3".
        factor: Divisor of the keep probability; None: found so that `rate` is met.

    Returns:
        (N,) int64 noisy labels.
    """
    if rate == 0.0:
        return label.copy()
    wrong, score = _best_wrong(label, probs)
    gap = np.maximum(probs[np.arange(len(label)), label] - score, 0.0)
    keep = {
        "pmd1": 0.5 + 0.5 * gap**2,
        "pmd2": gap**3,
        "pmd3": (gap**3 + gap**2 + gap) / 3.0,
    }[variant]
    if factor is None:
        factor = _tuned_factor(keep, rate)
    if not factor > 0.0:
        raise ConfigError(f"factor is {factor}; it must be greater than 0.")
    kept = rng.random(len(label)) < np.minimum(keep / factor, 1.0)
    return np.where(kept, label, wrong)


def _tuned_factor(keep: np.ndarray, rate: float) -> float:
    """Find the factor for which the expected share of flips is `rate`, by bisection."""
    if rate == 1.0:
        return float("inf")
    always = float(np.mean(keep == 0.0))
    if rate < always:
        raise ConfigError(
            f"rate is {rate}, but {always:.4f} of the samples have a wrong class at least as "
            "likely as their label, and this variant flips all of those. Use a higher rate, "
            "pmd1, or the probabilities of a model that fits the clean labels."
        )
    low, high = float(keep[keep > 0.0].min(initial=1.0)), 1.0
    while np.mean(np.minimum(keep / high, 1.0)) > 1.0 - rate:
        high *= 2.0
    for _ in range(100):
        middle = np.sqrt(low * high)
        kept = np.mean(np.minimum(keep / middle, 1.0))
        low, high = (middle, high) if kept > 1.0 - rate else (low, middle)
    return float(high)


def _best_wrong(label: np.ndarray, probs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give the most likely class that is not the label, (N,), and its probability, (N,)."""
    rows = np.arange(len(label))
    others = probs.copy()
    others[rows, label] = -np.inf
    wrong = others.argmax(axis=1)
    return wrong, others[rows, wrong]


def _table(name: str, values: np.ndarray | None, variant: str, rows: int) -> np.ndarray:
    if values is None:
        raise ConfigError(f"instance noise {variant!r} needs {name}.")
    table = np.asarray(values)
    if table.ndim != 2 or len(table) != rows or table.dtype.kind not in "fiu":
        raise DataError(
            f"{name} have shape {table.shape} and type {table.dtype}; "
            f"they must be numbers with one row for each of the {rows} labels."
        )
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(bad):
        raise DataError(f"{name} are not finite in {len(bad)} rows: {shortlist(bad)}.")
    return table


def _probabilities(table: np.ndarray, num_classes: int) -> np.ndarray:
    if table.shape[1] != num_classes:
        raise DataError(
            f"probs have {table.shape[1]} columns; the data has {num_classes} classes, "
            "one column each, in their order."
        )
    probs = table.astype(np.float64)
    # Half precision leaves about three digits of a sum.
    bad = np.flatnonzero((probs < 0.0).any(axis=1) | (np.abs(probs.sum(axis=1) - 1.0) > 5e-3))
    if len(bad):
        raise DataError(
            f"probs are not probabilities in {len(bad)} rows: {shortlist(bad)}; "
            "no entry may be negative and each row must sum to 1."
        )
    return probs
