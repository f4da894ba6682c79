"""Decisions under a policy: relabel where that is nearly always right, ask where it is not."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.calibration.constants import judge_constants
from labelclean.calibration.cut import expected_f1_cut, expected_precision
from labelclean.calibration.noise_model import may_be_clean
from labelclean.correction.actions import ACTIONS
from labelclean.errors import ConfigError

VERDICTS = ACTIONS[:4]
"""What can be decided about a row; codes are positions here."""
_KEEP, _RELABEL, _REVIEW, _DROP = range(4)
POLICY_MODES = ("careful", "relabel", "review", "drop")


@dataclass(frozen=True, slots=True)
class Policy:
    """How far to go.

    Args:
        mode: What happens to flagged rows. "careful" takes as many of the surest suggestions as
            `relabel_precision` allows and sends the rest to review; "relabel" takes every
            suggestion; "review" changes nothing; "drop" removes them.
        relabel_precision: Least probability of each suggestion that "careful" takes, or, where
            these probabilities are lower bounds, least expected share of right ones.
        budget: Flag exactly so many of the most suspect rows, instead of the cut of the largest
            expected F1.
        target_precision: Flag as many as keep the expected share of errors among the flagged at
            or above this, instead of that cut.
    """

    mode: str = "careful"
    relabel_precision: float = 0.95
    budget: int | None = None
    target_precision: float | None = None

    def __post_init__(self) -> None:
        faults = []
        if self.mode not in POLICY_MODES:
            faults.append(f"mode is {self.mode!r}; known: {', '.join(POLICY_MODES)}")
        for name in ("relabel_precision", "target_precision"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                faults.append(f"{name} is {value}; it must be above 0 and at most 1")
        if self.budget is not None and self.budget < 0:
            faults.append(f"budget is {self.budget}; it must not be negative")
        if self.budget is not None and self.target_precision is not None:
            faults.append("budget and target_precision both set the cut; give one of them")
        if faults:
            raise ConfigError("policy: " + "; ".join(faults) + ".")


def least_flagged(rate: float | None, interval: tuple[float, float]) -> float:
    """Give the p_error from which a row may be flagged.

    Where the labels may as well all be right, only rows that are rather wrong than right are.
    """
    if rate is not None and may_be_clean(rate, interval):
        return 0.5
    return judge_constants().least_flagged


def cut(p_error: NDArray[np.float64], policy: Policy, least: float = 0.0) -> NDArray[np.int64]:
    """Give the positions inside the policy's cut, rising; none where there is no estimate.

    Args:
        p_error: (N,) probability that the given label is wrong, most suspect first; NaN where
            there is no estimate.
        policy: Where to cut.
        least: Rows below that are not flagged, unless the policy has a budget.
    """
    doubtful = p_error > 0
    at = None if doubtful.all() else np.flatnonzero(doubtful)
    sure = p_error if at is None else p_error[at]
    if policy.budget is not None:
        size = policy.budget
    elif policy.target_precision is not None:
        # Precision falls with every row, so the last row that meets the target is the cut.
        size = int(np.count_nonzero(expected_precision(sure) >= policy.target_precision))
    else:
        size = expected_f1_cut(sure, least)
    return np.arange(min(size, len(sure))) if at is None else at[:size]


def actions_in_cut(
    given: NDArray[np.int64],
    suggested: NDArray[np.int64],
    p_suggested: NDArray[np.floating],
    policy: Policy,
    bounded: bool = False,
) -> NDArray[np.int8]:
    """(n,) positions in ACTIONS for rows inside the cut.

    Args:
        given: (n,) given labels.
        suggested: (n,) most probable true class.
        p_suggested: (n,) its probability.
        policy: How far to go.
        bounded: These are lower bounds, so that their mean may stand for all.
    """
    code = np.full(len(given), _DROP if policy.mode == "drop" else _REVIEW, dtype=np.int8)
    moved = np.flatnonzero(suggested != given)
    if policy.mode == "careful":
        moved = moved[np.argsort(-p_suggested[moved], kind="stable")]
        sure = p_suggested[moved].astype(np.float64)
        # Both fall with every suggestion that is taken.
        enough = expected_precision(sure) if bounded else sure
        moved = moved[: int(np.count_nonzero(enough >= policy.relabel_precision))]
    if policy.mode in ("careful", "relabel"):
        code[moved] = _RELABEL
    return code


def decide(  # noqa: PLR0913 (what is known of the rows is one matter)
    label: NDArray[np.int64],
    p_error: NDArray[np.floating],
    order: NDArray[np.int64],
    suggested: NDArray[np.int64],
    p_suggested: NDArray[np.floating],
    policy: Policy | None = None,
    verified: NDArray[np.bool_] | None = None,
    least: float = 0.0,
    *,
    bounded: bool = False,
) -> NDArray[np.object_]:
    """(N,) text: keep, relabel, review or drop.

    Args:
        label: (N,) given labels.
        p_error: (N,) probability that the given label is wrong; NaN without estimate: kept.
        order: (N,) the rows, most suspect first (`evidence.ranking.most_suspect_first`).
        suggested: (N,) most probable true class.
        p_suggested: (N,) its probability.
        policy: How far to go; default: careful.
        verified: (N,) rows a person vouched for: never changed, dropped or sent to review.
        least: Rows below that p_error are not flagged, unless the policy has a budget.
        bounded: See `actions_in_cut`.
    """
    policy = policy or Policy()
    if verified is not None:
        p_error = np.where(verified, 0.0, p_error)
    flagged = order[cut(p_error[order].astype(np.float64), policy, least)]
    code = np.zeros(len(label), dtype=np.int8)
    code[flagged] = actions_in_cut(
        label[flagged], suggested[flagged], p_suggested[flagged], policy, bounded
    )
    return np.array(VERDICTS, dtype=object)[code]
