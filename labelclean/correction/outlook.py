"""What is left to look at, and how many errors the cut is expected to miss."""

from dataclasses import replace
from typing import Any

import numpy as np

from labelclean.arrays import Bools
from labelclean.calibration.noise_model import is_wide
from labelclean.correction.actions import KEEP, RELABEL
from labelclean.correction.result import Audit

FEW = 20
"""Rows worth a look where none is flagged although errors are expected."""
_ONE = 0.5
"""From here on an expected number rounds to one."""


def outlook(audit: Audit) -> dict[str, Any]:
    """Count, as plain data, what a person has before them.

    Rows a person decided are done. `look_first` is how many of the most suspect open rows to look
    at: the flagged ones that are not relabelled, or a few where none is flagged although errors
    are expected; the expectations are sums of p_error, None where there is no estimate.
    """
    open_rows = audit.waiting | (audit.action == KEEP)
    if audit.decided is not None:
        open_rows &= ~audit.decided
    kept, asked = open_rows & (audit.action == KEEP), audit.waiting & (audit.action != RELABEL)
    missed = _expected(audit, kept)
    look = int(np.count_nonzero(asked))
    if not audit.waiting.any() and missed is not None and missed >= 1:
        look = min(FEW, int(np.count_nonzero(kept)))
    return {
        "open": int(np.count_nonzero(open_rows)),
        "decided": 0 if audit.decided is None else int(np.count_nonzero(audit.decided)),
        "flagged": int(np.count_nonzero(audit.waiting)),
        "look_first": look,
        "expected_wrong_flagged": _expected(audit, audit.waiting),
        "expected_missed": missed,
    }


def with_outlook(audit: Audit) -> Audit:
    """Say behind the headline what is left to look at; nothing where there is no estimate."""
    left, rate = outlook(audit), audit.noise_rate
    if rate is None:
        return audit
    head = 1 if audit.decided is None else 2
    said = audit.diagnosis
    low, high = audit.noise_interval
    rows = int(np.count_nonzero(np.isfinite(audit.p_error)))
    most = high * rows - (rate * rows - left["expected_missed"])
    wide = is_wide(rate, (low, high)) and round(most) > round(left["expected_missed"])
    return replace(
        audit, diagnosis=(*said[:head], _sentence(left, most if wide else None), *said[head:])
    )


def _sentence(left: dict[str, Any], most: float | None) -> str:
    """Say it; `most` is how many may be missed at the upper end of a wide interval."""
    flagged, look, kept = left["flagged"], left["look_first"], left["open"] - left["flagged"]
    missed = "less than one wrong label is expected"
    if left["expected_missed"] >= _ONE:
        missed = f"about {left['expected_missed']:.0f} wrong labels are expected"
    missed += f" among the {kept} kept"
    missed += "" if most is None else f" (up to {most:.0f} at the interval's upper end)"
    if not flagged:
        still = "No other row" if left["decided"] else "No row"
        if not look:
            return f"{still} is flagged; {missed}."
        return f"{still} is flagged, yet {missed}: look at the {look} most suspect first."
    first = "" if not look else f"Look at these {look} first: the rows to review. "
    if left["decided"] and look:
        first = f"Left to look at: {look} rows to review. "
    wrong = left["expected_wrong_flagged"]
    found = "Less than one" if wrong < _ONE else f"About {wrong:.0f}"
    return f"{first}{found} of the {flagged} flagged labels are expected to be wrong; {missed}."


def _expected(audit: Audit, rows: Bools) -> float | None:
    if audit.noise_rate is None:
        return None
    return round(float(np.nansum(audit.p_error[rows])), 2)
