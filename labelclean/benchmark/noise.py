"""Planting known label noise: the one implementation for tests, demo, self-check and benchmarks.

Every protocol reads a frozen copy of the clean labels. Code of several papers changes labels class
by class in place, so that at a rate of 40 % a part of the cats that became dogs turn back into
cats; that cannot happen here.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from labelclean.benchmark import class_maps, transitions
from labelclean.benchmark.injection import (
    Injection,
    check_choice,
    check_fraction,
    exact_count,
    freeze_labels,
    measure_injection,
    other_class,
    rows_by_class,
)
from labelclean.benchmark.instance_noise import instance
from labelclean.benchmark.openset import openset
from labelclean.catalogue import Catalogue
from labelclean.errors import ConfigError, shortlist

SYMMETRIC_VARIANTS = ("other", "any")
GROUP_VARIANTS = ("circular", "swap", "uniform")


def symmetric(
    label: np.ndarray,
    num_classes: int,
    rate: float,
    rng: np.random.Generator,
    variant: str = "other",
    balanced: bool = False,
) -> Injection:
    """Flip a label to a class drawn uniformly.

    Results under the two variants are not comparable: 40 % of `any` on ten classes are 36 % wrong
    labels.

    Args:
        label: (N,) clean labels.
        num_classes: C.
        rate: r.
        rng: Where the draws come from.
        variant: "other": with probability r one of the C-1 other classes (IMAE, GR, SL);
            "any": exactly int(rN) samples get one of all C classes, so that about r(C-1)/C are
            wrong (NAL, SELC, DivideMix, ELR).
        balanced: Only for "other": flip exactly round(r n) of the n samples of each class (APL)
            instead of each sample with probability r.
    """
    check_choice("variant", variant, SYMMETRIC_VARIANTS)
    noisy = label.copy()
    if variant == "any":
        if balanced:
            raise ConfigError("balanced noise exists only for the variant 'other'.")
        chosen = rng.permutation(len(label))[: exact_count(rate, len(label))]
        noisy[chosen] = rng.integers(0, num_classes, len(chosen))
    else:
        draws = rng.random(len(label))
        chosen = np.flatnonzero(
            _lowest(draws, rows_by_class(label, num_classes), rate) if balanced else draws < rate
        )
        noisy[chosen] = other_class(label[chosen], num_classes, rng)
    return measure_injection(label, noisy, num_classes, rate)


def _lowest(draws: np.ndarray, members: list[np.ndarray], rate: float) -> np.ndarray:
    """Mark in every class the round(rate * n) samples with the lowest draws; (N,) bool."""
    chosen = np.zeros(len(draws), dtype=bool)
    for rows in members:
        chosen[rows[np.argsort(draws[rows])][: round(rate * len(rows))]] = True
    return chosen


def asymmetric(
    label: np.ndarray,
    num_classes: int,
    rate: float,
    rng: np.random.Generator,
    classes: Sequence[object] | None = None,
    mapping: str | Sequence[int] | np.ndarray | Mapping[str, str] | None = None,
    variant: str | None = None,
    superclass: str = "true",
) -> Injection:
    """Flip a label to the class it is easily mistaken for.

    The pairs come from `mapping`, else from the class names: those of CIFAR-10 (truck to
    automobile, bird to airplane, deer to horse, cat and dog to each other; half of the samples are
    affected) and of CIFAR-100 (inside superclasses) are known.

    Args:
        label: (N,) clean labels.
        num_classes: C.
        rate: Probability of a flip for a sample of a class that has a counterpart.
        rng: Where the draws come from.
        classes: (C,) class names in label order.
        mapping: (C,) the class each is mistaken for, itself for a class that stays clean; or names
            to names, which needs `classes`; or (G, K) groups of classes mistaken for each other;
            or a name in `class_maps.BUILTIN_MAPS` for classes that are the ids 0, 1, 2, ...
        variant: Inside a group: "circular" to the next one (Patrini, NAL; what None means);
            "swap" two classes per group, drawn at random (SL, IMAE); "uniform" to any other member
            (GR). A map of pairs has no variants.
        superclass: For CIFAR-100 "true" or "blocks", see `class_maps.superclasses`.
    """
    confused = _confused(mapping, classes, superclass)
    if confused.ndim == 2:
        scheme = check_choice("variant", variant or GROUP_VARIANTS[0], GROUP_VARIANTS)
        counterpart = transitions.from_groups(confused, num_classes, scheme, rng)
    elif variant is None:
        counterpart = transitions.from_map(confused, num_classes)
    else:
        raise ConfigError(
            f"variant is {variant!r}, but the classes are flipped by a map of pairs, which has no "
            "variants; leave it out."
        )
    noisy = transitions.resample(label, transitions.soften(counterpart, rate), rng)
    return measure_injection(label, noisy, num_classes, rate)


def _confused(
    mapping: str | Sequence[int] | np.ndarray | Mapping[str, str] | None,
    classes: Sequence[object] | None,
    superclass: str,
) -> np.ndarray:
    """Give the class map, (C,), or the groups, (G, K)."""
    if mapping is not None and not isinstance(mapping, str | Mapping):
        return np.asarray(mapping)
    if classes is None:
        raise ConfigError("asymmetric noise needs class names, or a map of class positions.")
    if isinstance(mapping, str):
        return class_maps.builtin_map(mapping, classes, superclass)
    if mapping is not None:
        return class_maps.pair_map(mapping, classes)
    known = class_maps.cifar10_map(classes)
    if known is None:
        known = class_maps.cifar100_groups(classes, superclass)
    if known is None:
        raise ConfigError(
            "asymmetric noise knows only the class names of CIFAR-10 and CIFAR-100; the data has "
            f"{shortlist(map(repr, classes))}. Say which class is mistaken for which in a file and "
            "name it with --map; for class ids instead of names give the data set: --map "
            f"{', '.join(class_maps.BUILTIN_MAPS)}."
        )
    return known


def pairflip(
    label: np.ndarray, num_classes: int, rate: float, rng: np.random.Generator
) -> Injection:
    """Flip class i to class i + 1, the last one to the first, with probability `rate`.

    Args:
        label: (N,) clean labels.
        num_classes: C.
        rate: Probability of a flip.
        rng: Where the draws come from.
    """
    target = np.roll(np.arange(num_classes), -1)
    return asymmetric(label, num_classes, rate, rng, mapping=target)


def matrix_noise(
    label: np.ndarray,
    num_classes: int,
    rate: float,
    rng: np.random.Generator,
    transition: np.ndarray,
) -> Injection:
    """Draw each label from the row of a transition matrix.

    Args:
        label: (N,) clean labels.
        num_classes: C.
        rate: Not used: T states every rate. The nominal rate reported is the one T expects for
            these labels.
        rng: Where the draws come from.
        transition: (C, C) T, row-stochastic, T[i, j] = P(noisy = j | clean = i).
    """
    del rate
    checked = transitions.check_transition(transition, num_classes)
    noisy = transitions.resample(label, checked, rng)
    expected = float(1.0 - np.diag(checked)[label].mean())
    return measure_injection(label, noisy, num_classes, expected)


NOISES: Catalogue[Injection] = Catalogue(
    "noise",
    {
        "symmetric": symmetric,
        "asymmetric": asymmetric,
        "pairflip": pairflip,
        "instance": instance,
        "openset": openset,
        "matrix": matrix_noise,
    },
)


def inject(
    kind: str,
    label: np.ndarray,
    num_classes: int,
    rate: float,
    rng: np.random.Generator,
    **options: object,
) -> Injection:
    """Plant noise of a kind in clean labels; the same generator state gives the same noise.

    Args:
        kind: A name in NOISES.
        label: (N,) integers, position of the class.
        num_classes: C.
        rate: Probability that the label of an affected sample is flipped.
        rng: Where every draw comes from.
        options: The protocol's own parameters.

    Raises:
        ConfigError: The kind, an option or the rate is not one we know.
        DataError: The labels, features or probabilities cannot be used.
    """
    NOISES.find(kind)
    check_fraction("rate", rate)
    frozen = freeze_labels(label, num_classes)
    return NOISES.build(kind, label=frozen, num_classes=num_classes, rate=rate, rng=rng, **options)
