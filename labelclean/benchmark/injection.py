"""What every noise protocol answers, and the checks they share."""

from dataclasses import dataclass

import numpy as np

from labelclean.errors import ConfigError, DataError, shortlist

CLEAN, CLOSED, OPEN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Injection:
    """Planted noise and the truth about it; N samples, C classes.

    Args:
        label: (N,) int64, the noisy labels.
        flipped: (N,) bool, True where the label is now wrong: `kind_of` is not 0.
        kind_of: (N,) int8: 0 clean; 1 closed-set, the label changed; 2 open-set, the picture was
            replaced by one of no known class and the label stayed.
        nominal_rate: The rate asked for.
        actual_rate: Share of samples whose label is now wrong.
        transition: (C, C) int64 counts, row the true and column the noisy label; open-set samples,
            which have no true label, are not counted.
        donor: (N,) int64, the row of the second data set whose picture replaces this one, -1
            elsewhere; None unless the noise is open-set.
    """

    label: np.ndarray
    flipped: np.ndarray
    kind_of: np.ndarray
    nominal_rate: float
    actual_rate: float
    transition: np.ndarray
    donor: np.ndarray | None = None


def measure_injection(
    label: np.ndarray,
    noisy: np.ndarray,
    num_classes: int,
    rate: float,
    donor: np.ndarray | None = None,
) -> Injection:
    """Compare clean and noisy labels, so that every rate and mask is what was produced.

    Args:
        label: (N,) clean labels.
        noisy: (N,) labels after the protocol.
        num_classes: C.
        rate: The rate asked for.
        donor: (N,) row of the second data set, -1 where the picture stayed; None: it stayed
            everywhere.
    """
    kind_of = np.where(noisy == label, CLEAN, CLOSED).astype(np.int8)
    if donor is not None:
        kind_of[donor >= 0] = OPEN
    known = kind_of != OPEN
    cells = label[known] * num_classes + noisy[known]
    transition = np.bincount(cells, minlength=num_classes**2).reshape(num_classes, num_classes)
    flipped = kind_of != CLEAN
    return Injection(
        label=noisy.astype(np.int64),
        flipped=flipped,
        kind_of=kind_of,
        nominal_rate=float(rate),
        actual_rate=float(flipped.mean()),
        transition=transition.astype(np.int64),
        donor=donor,
    )


def exact_count(rate: float, total: int) -> int:
    """Give int(rate * total) as the papers do, but 29 % of 100 is 29, not 28 by rounding error."""
    return int(rate * total + 1e-9)


def rows_by_class(label: np.ndarray, num_classes: int) -> list[np.ndarray]:
    """Give the rows of every class, each in order; one pass instead of one per class."""
    order = np.argsort(label, kind="stable")
    return np.split(order, np.searchsorted(label[order], np.arange(1, num_classes)))


def other_class(label: np.ndarray, num_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Draw for every label one of the C-1 other classes, uniformly."""
    return (label + rng.integers(1, num_classes, len(label))) % num_classes


def freeze_labels(label: np.ndarray, num_classes: int) -> np.ndarray:
    """Copy the clean labels, checked and read-only: no protocol can read its own output.

    Args:
        label: (N,) integers in 0..C-1.
        num_classes: C, at least 2.

    Raises:
        DataError: The labels are empty, not integers, out of range or of one class only.
    """
    given = np.asarray(label)
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "iu":
        raise DataError(
            f"labels are of shape {given.shape} and type {given.dtype}; "
            "noise needs a non-empty vector of integers."
        )
    if num_classes < 2:
        raise DataError(
            f"the data has {num_classes} class; a label can only be flipped to another class, "
            "so at least 2 are needed."
        )
    bad = np.flatnonzero((given < 0) | (given >= num_classes))
    if len(bad):
        raise DataError(
            f"{len(bad)} labels lie outside 0..{num_classes - 1}, first at rows {shortlist(bad)}; "
            "noise can only be planted in labelled rows."
        )
    frozen = given.astype(np.int64)
    frozen.setflags(write=False)
    return frozen


def check_fraction(name: str, value: float) -> float:
    """Refuse a rate that is not a number in [0, 1]."""
    # Written so that NaN fails too.
    if not 0.0 <= value <= 1.0:
        hint = f" {value:g} % is {value / 100:g}." if 1.0 < value <= 100.0 else ""
        raise ConfigError(f"{name} is {value}; it must lie between 0 and 1.{hint}")
    return float(value)


def check_choice(name: str, value: str, known: tuple[str, ...]) -> str:
    """Refuse an option's value that is not one of the known ones."""
    if value not in known:
        raise ConfigError(f"{name} is {value!r}; it must be one of {', '.join(known)}.")
    return value
