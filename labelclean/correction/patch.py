"""A reversible patch of decisions, as a value; writing it to a file is somebody else's job."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.errors import DataError, shortlist


@dataclass(frozen=True, slots=True)
class Change:
    """One relabelling: the row, the label before and the label after."""

    row: int
    old: int
    new: int

    def reversed(self) -> "Change":
        """Give the change that undoes this one."""
        return Change(self.row, self.new, self.old)


def apply_patch(labels: NDArray[np.int64], changes: Iterable[Change]) -> NDArray[np.int64]:
    """Give the labels after the changes; the input stays as it is.

    Raises:
        DataError: A row is not there, is changed twice, or does not carry the label the change
            starts from: the patch belongs to other labels.
    """
    changes = tuple(changes)
    patched = labels.copy()
    seen: set[int] = set()
    faults = []
    for change in changes:
        if not 0 <= change.row < len(labels):
            faults.append(f"row {change.row} is outside 0 to {len(labels) - 1}")
        elif change.row in seen:
            faults.append(f"row {change.row} is changed twice")
        elif labels[change.row] != change.old:
            faults.append(f"row {change.row} carries {labels[change.row]}, not {change.old}")
        else:
            patched[change.row] = change.new
        seen.add(change.row)
    if faults:
        raise DataError(f"the patch does not fit these labels: {shortlist(faults)}.")
    return patched


def revert_patch(labels: NDArray[np.int64], changes: Iterable[Change]) -> NDArray[np.int64]:
    """Give the labels before the changes."""
    return apply_patch(labels, [change.reversed() for change in changes])
