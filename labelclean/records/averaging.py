"""Class posteriors averaged over the later epochs, in a way that a killed run can repeat."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Allocate = Callable[[str, type[np.generic], tuple[int, int]], NDArray[Any]]


class LaterEpochs:
    """The sum of (N, C) posteriors over the epochs after the first third.

    Args:
        allocate: Gives an array by name, type and shape: a new one, or that of a run that goes on.
        rows: N.
        classes: C.
        epochs: How many epochs are planned.
    """

    def __init__(self, allocate: Allocate, rows: int, classes: int, epochs: int) -> None:
        self.rows, self.first = rows, epochs // 3
        # Two sums that take turns: an epoch that a killed run repeats adds to the same one before.
        self._sums = allocate("posterior_sum", np.float32, (2 * rows, classes))

    def add(self, epoch: int, posterior: NDArray[np.float32]) -> None:
        """Add what was said in an epoch (0-based); of the first third nothing is kept."""
        if epoch >= self.first:
            before, now = self._turn(epoch - 1), self._turn(epoch)
            now[:] = posterior if epoch == self.first else before + posterior

    def mean(self, trained: int) -> NDArray[np.float32] | None:
        """(N, C) the mean over the later of so many epochs; None: training ended before them."""
        if trained <= self.first:
            return None
        return self._turn(trained - 1) / np.float32(trained - self.first)

    def flush(self) -> None:
        """Bring a mapped array to the disk."""
        if isinstance(self._sums, np.memmap):
            self._sums.flush()

    def _turn(self, epoch: int) -> NDArray[np.float32]:
        """(N, C) the sum after an epoch, as long as it was not replaced."""
        sums: NDArray[np.float32] = self._sums[epoch % 2 * self.rows :][: self.rows]
        return sums
