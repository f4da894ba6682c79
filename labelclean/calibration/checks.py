"""Is this input what it claims to be? Refusals for what cannot be used, doubts for the rest."""

import math
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Ints, Probs, Singles
from labelclean.calibration.arrays import DENSE_CLASSES, tile_rows
from labelclean.calibration.constants import judge_constants
from labelclean.errors import DataError, shortlist

ROWS_SHOWN = 5
FAULTS = {
    "hold NaN or infinity": "predict those rows again or leave them out",
    "hold negative numbers": "pass probabilities, not logits",
    "do not sum to one": "apply softmax, or divide each row by its sum",
}


@dataclass(frozen=True, slots=True)
class Inspected:
    """What one pass over the probabilities found.

    Args:
        p_given: (N,) float32, probability of the given label.
        apart: (M,) int64, the rows with a class that is more probable than the given label.
        rival: (M,) int64, the most probable class there.
        gain: Mean of p_given minus the probability of a label drawn from the class shares.
        spread: Standard deviation of that difference.
    """

    p_given: Singles
    apart: Ints
    rival: Ints
    gain: float
    spread: float

    @property
    def disagreement(self) -> float:
        """Share of rows whose most probable class is not the given label."""
        return len(self.apart) / len(self.p_given)

    @property
    def informative(self) -> bool:
        """Whether the given labels are more probable than drawn ones, beyond chance.

        If probabilities know nothing about labels, both have the same mean. Unlike hits of the
        most probable class this also sees a weak model under heavy noise.
        """
        error = max(self.spread, 1e-6) / math.sqrt(len(self.p_given))
        return self.gain > judge_constants().informative_errors * error


def inspect(label: Ints, probs: Probs) -> Inspected:
    """Read the probabilities once, in tiles, and refuse what are none.

    Raises:
        DataError: Some rows hold NaN or infinity, negative numbers, or do not sum to one.
    """
    count, size = probs.shape
    tolerance = 1e-2 if probs.dtype == np.float16 else 1e-3
    half = np.float32(0.5 + tolerance)
    p_given = np.empty(count, dtype=np.float32)
    shares = np.ones((size, 2), dtype=np.float32)
    shares[:, 1] = np.bincount(label, minlength=size) / count
    apart, rival, faulty, gains = [], [], [], np.zeros(2)
    step = tile_rows(size)
    for begin in range(0, count, step):
        rows = slice(begin, begin + step)
        tile = np.ascontiguousarray(probs[rows], dtype=np.float32)
        # Not a number and infinity show in the sum, so one product finds three faults.
        with np.errstate(invalid="ignore"):
            sums, drawn = (tile @ shares).T
        if not np.abs(sums - 1).max() <= tolerance or tile.min() < 0:
            faulty.append((begin, sums, tile.min(axis=1) < 0))
            continue
        own = p_given[rows]
        np.take(tile.ravel(), np.arange(0, tile.size, size) + label[rows], out=own, mode="clip")
        # A label with more than half of the row's sum has no rival: look for one only elsewhere.
        open_rows = np.flatnonzero(own <= half)
        rest = tile[open_rows]
        best = rest.argmax(axis=1)
        other = np.flatnonzero(rest[np.arange(len(rest)), best] > own[open_rows])
        apart.append(open_rows[other] + begin)
        rival.append(best[other])
        gain = np.subtract(own, drawn, dtype=np.float64)
        gains += gain.sum(), gain @ gain
    if faulty:
        _refuse(faulty, tolerance)
    mean, square = (gains / count).tolist()
    spread = math.sqrt(max(0.0, square - mean * mean))
    return Inspected(p_given, np.concatenate(apart), np.concatenate(rival), mean, spread)


def _refuse(parts: list[tuple[int, Singles, NDArray[np.bool_]]], tolerance: float) -> NoReturn:
    """Name every fault of the tiles that have some: first row, sums and signs of their rows."""
    found: dict[str, list[int]] = {}
    for begin, sums, negative in parts:
        finite = np.isfinite(sums)
        off = finite & ~negative & (np.abs(np.where(finite, sums, 1) - 1) > tolerance)
        for what, bad in zip(FAULTS, (~finite, negative, off), strict=True):
            found.setdefault(what, []).extend((begin + np.flatnonzero(bad)).tolist())
    faults = [
        f"{len(rows)} rows {what} (rows {shortlist(rows, ROWS_SHOWN)}): {FAULTS[what]}"
        for what, rows in found.items()
        if rows
    ]
    raise DataError(f"pred_probs: {'; '.join(faults)}.")


def doubts(label: Ints, seen: Inspected, size: int) -> list[str]:
    """Say what looks wrong about an input that can be used: permuted columns, in-sample rows."""
    found = []
    moved = displaced_classes(label, seen, size)
    if moved:
        pairs = shortlist([f"{old} as {new}" for old, new in moved], ROWS_SHOWN)
        found.append(
            "the columns of pred_probs look permuted: most rows of some classes are predicted as "
            f"another ({pairs}). Check that column k is the probability of class k."
        )
    known, wrong = judge_constants(), seen.disagreement
    sure = float(seen.p_given.mean(dtype=np.float64))
    if len(label) >= known.memorised_rows and wrong <= known.memorised and sure >= known.certain:
        found.append(
            f"the model agrees with {1 - wrong:.2%} of the labels at a mean probability of "
            f"{sure:.3f}: it may have been trained on these rows. Use out-of-sample (cross-"
            "validated) probabilities; from memorised labels no error can be seen."
        )
    return found


def displaced_classes(label: Ints, seen: Inspected, size: int) -> list[tuple[int, int]]:
    """Find classes whose rows are mostly predicted as one other class that is displaced as well.

    Noise that keeps the true label in the majority never does this; a wrong column order always.
    """
    count = np.bincount(label, minlength=size)
    pairs = label[seen.apart] * size + seen.rival
    if size <= DENSE_CLASSES:
        table = np.bincount(pairs, minlength=size * size)
        keys = np.flatnonzero(table)
        hits = table[keys]
    else:
        keys, hits = np.unique(pairs, return_counts=True)
    old, new = keys // size, keys % size
    known = judge_constants()
    most = (hits > known.displaced * count[old]) & (count[old] >= known.displaced_rows)
    target = dict(zip(old[most].tolist(), new[most].tolist(), strict=True))
    return [(k, v) for k, v in target.items() if v in target]
