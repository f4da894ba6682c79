"""Exact confidence bounds for counts in a finite collection of rows, from a random sample of them.

The counterpart of Clopper and Pearson's interval for draws without replacement: the bounds are
the counts that a one-sided test at the given level does not reject, with hypergeometric tails
instead of binomial ones. Drawing everything gives the count itself.
"""

import math


def _at_least(seen: int, rows: int, marked: int, drawn: int) -> float:
    """Probability of `seen` or more marked ones among those drawn."""
    from scipy.stats import hypergeom  # noqa: PLC0415 (only where people answered; slow to import)

    return float(hypergeom.sf(seen - 1, rows, marked, drawn))


def _at_most(seen: int, rows: int, marked: int, drawn: int) -> float:
    """Probability of `seen` or fewer marked ones among those drawn."""
    from scipy.stats import hypergeom  # noqa: PLC0415 (as above)

    return float(hypergeom.cdf(seen, rows, marked, drawn))


def fewest(seen: int, drawn: int, rows: int, tail: float) -> int:
    """Give the least number of marked rows that is not rejected.

    Args:
        seen: Marked rows among those drawn.
        drawn: Size of the simple random sample.
        rows: Size of the collection.
        tail: Probability of an error of this bound.
    """
    low, high = seen, rows - (drawn - seen)
    while low < high:
        middle = (low + high) // 2
        if _at_least(seen, rows, middle, drawn) > tail:
            high = middle
        else:
            low = middle + 1
    return low


def most(seen: int, drawn: int, rows: int, tail: float) -> int:
    """Give the largest number of marked rows that is not rejected; see `fewest`."""
    return rows - fewest(drawn - seen, drawn, rows, tail)


def plausible_at_most(share: float, seen: int, drawn: int, rows: int, tail: float) -> bool:
    """Whether the sample proves, at level `tail`, that at most `share` of the rows are marked."""
    too_many = _allowed(share, rows) + 1
    return too_many > rows or _at_most(seen, rows, too_many, drawn) <= tail


def more_than(share: float, seen: int, drawn: int, rows: int, tail: float) -> bool:
    """Whether the sample proves, at level `tail`, that more than `share` of the rows are marked."""
    return _at_least(seen, rows, min(_allowed(share, rows), rows), drawn) <= tail


def smallest_proof(share: float, rows: int, tail: float) -> int:
    """Give how many rows must be drawn to prove `plausible_at_most` if none of them is marked."""
    low, high = 1, rows
    while low < high:
        middle = (low + high) // 2
        if plausible_at_most(share, 0, middle, rows, tail):
            high = middle
        else:
            low = middle + 1
    return low


def _allowed(share: float, rows: int) -> int:
    # 5 % of 100 rows are 5, not 4, whatever binary fractions make of it.
    return math.floor(share * rows + 1e-9)
