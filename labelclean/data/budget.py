"""How much a manifest may claim: known from headers and sizes before anything is unpacked."""

import math
from dataclasses import dataclass

from labelclean.data.places import Place
from labelclean.errors import ConfigError, DataError

MOST_TABLE_ROWS, MOST_COLUMNS, MOST_NESTED = 5_000_000, 10_000, 64
MOST_UNPACKED = 4 * 2**30
_HONEST = 4  # times its size on the disk: what any table may take


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of what is read.

    A file of a few kilobytes may claim to hold what no memory holds. Rows, columns and nesting are
    bounded by themselves; bytes only where they are many times what lies on the disk.

    Args:
        times: Multiple of the limits.
    """

    times: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a budget that lets nothing in."""
        if not (math.isfinite(self.times) and self.times > 0):
            raise ConfigError(f"data.budget is {self.times}; it must be more than 0.")

    def require_rows(self, path: Place, count: int) -> None:
        """Refuse more rows than are read."""
        self._require(path, count, MOST_TABLE_ROWS, "rows")

    def require_columns(self, path: Place, count: int) -> None:
        """Refuse more columns than are read."""
        self._require(path, count, MOST_COLUMNS, "columns")

    def require_nested(self, path: Place, count: int) -> None:
        """Refuse values nested deeper than is read."""
        self._require(path, count, MOST_NESTED, "levels of values inside values")

    def require_unpacked(self, path: Place, unpacked: int, stored: int) -> None:
        """Refuse bytes that are many, and many times those on the disk."""
        if unpacked > _HONEST * stored:
            self._require(path, unpacked, MOST_UNPACKED, "bytes unpacked")

    def _require(self, path: Place, count: int, most: int, what: str) -> None:
        if count > most * self.times:
            raise DataError(
                f"{path} claims {count:,} {what}, and at most {int(most * self.times):,} are "
                f"read. If that is right, raise the limits with --budget {math.ceil(count / most)} "
                "(data.budget)."
            )


DEFAULT_BUDGET = Budget()
"""The limits where nobody said anything."""
