"""Is this input what it claims to be? Refusals for what cannot be used, doubts for the rest."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.calibration.arrays import DENSE_CLASSES, Floats, Ints, Probs, tile_rows
from labelclean.errors import DataError, shortlist

ROWS_SHOWN = 5
MEMORISED, CERTAIN, ENOUGH_ROWS = 0.001, 0.98, 100


@dataclass(frozen=True, slots=True)
class Inspected:
    """What one pass over the probabilities found.

    Args:
        predicted: (N,) int64, most probable class; the given label where it is one of several.
        p_given: (N,) float32, probability of the given label.
        p_drawn: (N,) float32, probability of a label drawn from the class shares instead.
    """

    predicted: Ints
    p_given: Floats
    p_drawn: Floats

    @property
    def informative(self) -> bool:
        """Whether the given labels are more probable than drawn ones, beyond two standard errors.

        If probabilities know nothing about labels, both have the same mean. Unlike hits of the
        most probable class this also sees a weak model under heavy noise.
        """
        gain = self.p_given - self.p_drawn
        spread = max(float(gain.std(dtype=np.float64)), 1e-6)
        return bool(gain.mean(dtype=np.float64) > 2 * spread / np.sqrt(len(gain)))


def inspect(label: Ints, probs: Probs) -> Inspected:
    """Read the probabilities once, in tiles, and refuse what are none.

    Raises:
        DataError: Some rows hold NaN or infinity, negative numbers, or do not sum to one.
    """
    count, size = probs.shape
    predicted = np.empty(count, dtype=np.int64)
    p_given = np.empty(count, dtype=np.float32)
    sums, p_drawn = np.empty(count, dtype=np.float32), np.empty(count, dtype=np.float32)
    negative = np.zeros(count, dtype=bool)
    shares = np.ones((size, 2), dtype=np.float32)
    shares[:, 1] = np.bincount(label, minlength=size) / count
    step = tile_rows(size)
    for begin in range(0, count, step):
        rows = slice(begin, begin + step)
        tile = np.ascontiguousarray(probs[rows], dtype=np.float32)
        # Not a number and infinity show in the sum, so one product finds three faults.
        sums[rows], p_drawn[rows] = (tile @ shares).T
        if tile.min() < 0:
            negative[rows] = tile.min(axis=1) < 0
        own = tile[np.arange(len(tile)), label[rows]]
        # Most rows agree with their label: look for the best class only where another is better.
        other = own < (tile.T.copy().max(axis=0) if size <= DENSE_CLASSES else tile.max(axis=1))
        predicted[rows] = label[rows]
        predicted[rows][other] = tile[other].argmax(axis=1)
        p_given[rows] = own
    _refuse(sums, negative, probs.dtype)
    return Inspected(predicted, p_given, p_drawn)


def _refuse(sums: Floats, negative: NDArray[np.bool_], kind: np.dtype[np.floating]) -> None:
    tolerance = 1e-2 if kind == np.float16 else 1e-3
    if not negative.any() and np.abs(sums - 1).max() <= tolerance:
        return
    finite = np.isfinite(sums)
    off = finite & ~negative & (np.abs(np.where(finite, sums, 1) - 1) > tolerance)
    faults = []
    for bad, what, remedy in (
        (~finite, "hold NaN or infinity", "predict those rows again or leave them out"),
        (negative, "hold negative numbers", "pass probabilities, not logits"),
        (off, "do not sum to one", "apply softmax, or divide each row by its sum"),
    ):
        rows = np.flatnonzero(bad)
        if len(rows):
            faults.append(f"{len(rows)} rows {what} (rows {shortlist(rows, ROWS_SHOWN)}): {remedy}")
    if faults:
        raise DataError(f"pred_probs: {'; '.join(faults)}.")


def doubts(label: Ints, seen: Inspected, size: int) -> list[str]:
    """Say what looks wrong about an input that can be used: permuted columns, in-sample rows."""
    found = []
    moved = displaced_classes(label, seen.predicted, size)
    if moved:
        pairs = shortlist([f"{old} as {new}" for old, new in moved], ROWS_SHOWN)
        found.append(
            "the columns of pred_probs look permuted: most rows of some classes are predicted as "
            f"another ({pairs}). Check that column k is the probability of class k."
        )
    wrong = float(np.mean(seen.predicted != label))
    sure = float(seen.p_given.mean(dtype=np.float64))
    if len(label) >= ENOUGH_ROWS and wrong <= MEMORISED and sure >= CERTAIN:
        found.append(
            f"the model agrees with {1 - wrong:.2%} of the labels at a mean probability of "
            f"{sure:.3f}: it may have been trained on these rows. Use out-of-sample (cross-"
            "validated) probabilities; from memorised labels no error can be seen."
        )
    return found


def displaced_classes(label: Ints, predicted: Ints, size: int) -> list[tuple[int, int]]:
    """Find classes whose rows are mostly predicted as one other class that is displaced as well.

    Noise that keeps the true label in the majority never does this; a wrong column order always.
    """
    count = np.bincount(label, minlength=size)
    apart = np.flatnonzero(predicted != label)
    pairs = label[apart] * size + predicted[apart]
    if size <= DENSE_CLASSES:
        table = np.bincount(pairs, minlength=size * size)
        keys = np.flatnonzero(table)
        hits = table[keys]
    else:
        keys, hits = np.unique(pairs, return_counts=True)
    old, new = keys // size, keys % size
    most = (hits > 0.5 * count[old]) & (count[old] >= 5)
    target = dict(zip(old[most].tolist(), new[most].tolist(), strict=True))
    return [(k, v) for k, v in target.items() if v in target]
