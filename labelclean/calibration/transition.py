"""The transition matrix T[c, k] = P(given k | true c), shrunk where few rows speak for it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Ints, Singles
from labelclean.calibration.arrays import weighted_count
from labelclean.calibration.constants import judge_constants

TABLE_CLASSES = 2048  # up to here a dense table is small enough to look things up in


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition matrix held as the counts it was made of.

    A row is (counts + a (eps pool + (1 - eps) e_c) + b e_c), normalised, where a is `prior_rows`,
    b `honest_rows`, eps the share of the counts off the diagonal and pool their pattern over all
    classes: a class with few rows borrows what all classes show, a pair nobody saw keeps a small
    probability.

    Args:
        size: Number of classes C.
        true, given: (P,) the pairs that were counted, by true class first.
        count: (P,) expected number of rows of each pair.
    """

    size: int
    true: Ints
    given: Ints
    count: NDArray[np.float64]
    eps: float
    column: NDArray[np.float64]
    mass: NDArray[np.float64]

    @classmethod
    def from_counts(
        cls, size: int, pairs: tuple[Ints, Ints], count: NDArray[np.float64]
    ) -> "Transition":
        """Shrink expected counts of pairs (true class, given label)."""
        true, given = pairs
        off = np.where(true == given, 0.0, count)
        total = float(count.sum())
        column, mass = weighted_count(given, off, size), weighted_count(true, count, size)
        return cls(
            size, true, given, count, float(off.sum()) / max(total, 1e-12), column,
            mass,
        )  # fmt: skip

    @classmethod
    def start(cls, size: int, pairs: tuple[Ints, Ints]) -> "Transition":
        """Begin with few flips, the same small value off the diagonal everywhere."""
        true, given = pairs
        heavy = 1e9  # so many that the prior does not matter
        flips = judge_constants().first_flips
        count = np.where(true == given, (1 - flips) * heavy, flips * heavy / max(size - 1, 1))
        mass = np.full(size, heavy)
        return cls(size, true, given, count, flips, np.ones(size), mass)

    def _prior(self, true: Ints, given: Ints) -> NDArray[np.float64]:
        others = self.column.sum() - self.column
        even = others <= 1e-12
        pool = np.where(
            even[true],
            1.0 / max(self.size - 1, 1),
            self.column[given] / np.where(even, 1.0, others)[true],
        )
        known = judge_constants()
        honest = known.prior_rows * (1 - self.eps) + known.honest_rows
        return np.where(true == given, honest, known.prior_rows * self.eps * pool)

    def _normalise(self, true: Ints, rows: NDArray[np.float64]) -> Singles:
        known = judge_constants()
        values = rows / (self.mass + known.prior_rows + known.honest_rows)[true]
        # A pair that cannot happen would make a row impossible and its posterior 0/0.
        return np.maximum(values, 1e-12).astype(np.float32)

    def values(self) -> Singles:
        """(P,) the matrix at the counted pairs."""
        return self._normalise(self.true, self.count + self._prior(self.true, self.given))

    def table(self) -> Singles:
        """(C, C) the whole matrix, rows true, columns given."""
        true, given = np.indices((self.size, self.size))
        rows = self._prior(true.ravel(), given.ravel())
        rows[self.true * self.size + self.given] += self.count
        return self._normalise(true.ravel(), rows).reshape(self.size, self.size)

    def matrix(self) -> NDArray[np.float64]:
        """(C, C) the whole matrix in double precision, rows sum to one."""
        table = self.table().astype(np.float64)
        table /= table.sum(axis=1, keepdims=True)
        return table

    def lookup(self) -> Callable[[Ints, Ints], Singles]:
        """Give a function of (true, given) pairs; a table of many classes is never built."""
        if self.size <= TABLE_CLASSES:
            table = self.table().ravel()
            return lambda true, given: table[true * self.size + given]
        keys = self.true * self.size + self.given

        def at(true: Ints, given: Ints) -> Singles:
            wanted = true * self.size + given
            near = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            count = np.where(keys[near] == wanted, self.count[near], 0.0)
            return self._normalise(true, count + self._prior(true, given))

        return at
