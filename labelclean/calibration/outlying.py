"""Let pictures that show none of the classes count as wrong labels, where flips explain too little.

A row that fits no class disagrees with its label no more than hard pictures do, so the noise model
explains it as doubt. Where rows with another class are few beside rows with none, the probability
that a picture shows none of the classes (`calibration/outliers.py`) is a lower bound of p_error.
Elsewhere it adds nothing but what it took from mislabelled rows. Where the labels may all be right,
an odd picture is only odd.
"""

from dataclasses import replace

import numpy as np
from scipy.special import logit

from labelclean.arrays import Bools, Floats, Ints
from labelclean.calibration.constants import judge_constants
from labelclean.calibration.judgement import Judgement, rate_interval

_EDGE = 1e-6


def with_outliers(
    judgement: Judgement, label: Ints, p_outlier: Floats | None, verified: Bools | None = None
) -> Judgement:
    """Raise p_error to the probability that none of the classes is shown, where that counts.

    Args:
        judgement: What the evidence says of N rows.
        label: (N,) given labels.
        p_outlier: (N,) that probability; None, or any NaN: not known.
        verified: (N,) rows whose label a person vouched for; None: none.
    """
    known, fitted = judge_constants(), judgement.fitted
    if p_outlier is None or fitted is None or np.isnan(p_outlier).any():
        return judgement
    odd = p_outlier if verified is None else np.where(verified, 0.0, p_outlier)
    own = judgement.p_error.astype(np.float64)
    raised = odd > own
    p_error = np.where(raised, odd, own)
    wrong, more = float(own.mean()), float((p_error - own).mean())
    if wrong < known.outliers_from or more < known.outliers_share * wrong:
        return judgement
    none = np.zeros(len(own)) if judgement.p_none is None else judgement.p_none
    log_odds = np.where(raised, logit(np.clip(odd, _EDGE, 1 - _EDGE)), judgement.log_odds)
    rate = float(p_error.mean())
    return replace(
        judgement,
        log_odds=log_odds.astype(np.float32),
        p_error=p_error,
        # No class fits such a picture better than the given one.
        suggested=np.where(raised, label, judgement.suggested),
        p_suggested=np.where(raised, 1 - odd, judgement.p_suggested).astype(np.float32),
        noise_rate=rate,
        interval=rate_interval(rate, fitted.supported, judgement.disagreement, len(own)),
        notes=(*judgement.notes, f"{more:.1%} of the rows count as wrong because their pictures "
               "seem to show none of the classes."),
        p_none=np.maximum(none, np.where(raised, odd, 0.0)).astype(np.float32),
    )  # fmt: skip
