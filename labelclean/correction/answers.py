"""What people's answers tell about all rows: corrected error probabilities and the estimate.

One place for the review page, `report`, `export`, `audit --decisions` and `retrain`, so that the
same answers mean the same everywhere. From 20 answers on the run's own error probabilities are
corrected by how often people found such rows wrong, and the noise rate is estimated.

Answers that evidence has seen cannot correct it: a network trained on the labels people gave is
sure of just these rows. They count in the estimate alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Floats
from labelclean.calibration.answers import Recalibration, recalibrate
from labelclean.correction.decisions import Decision, Decisions, meaning
from labelclean.correction.estimate import Answers, Estimate, estimate
from labelclean.correction.sample import BLOCK, Judged, Plan, draw

_UNKNOWN = float("nan")


@dataclass(frozen=True, slots=True)
class Heard:
    """Decisions that came after an audit, and how far they are answers to its sample.

    Args:
        decisions: Row to the decision that counts.
        known: Rows decided before the sample was drawn.
        lines: How many lines of decisions there were then.
        judgement: Digest of the judgement it was drawn from; None: no sample was written down,
            so it is the one that would be drawn now.
        earlier: What an earlier run about the same rows knew from these people; None: nothing.
    """

    decisions: Decisions = field(default_factory=dict)
    known: tuple[int, ...] = ()
    lines: int = 0
    judgement: str | None = None
    earlier: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """What so many answers tell.

    Args:
        change: Corrects the run's own error probabilities.
        estimate: The noise rate and the precision of automatic relabels.
        sampled: Whether the estimate rests on a random sample, so that its bounds are narrow.
    """

    change: Recalibration
    estimate: Estimate
    sampled: bool


def sample_of(judged: Judged, before: Decisions, heard: Heard, precision: float) -> Plan:
    """Draw the sample of a judgement that some decisions, made before, are no part of."""
    rows = heard.known
    if heard.judgement not in (None, judged.digest):  # answers to another sample are only known
        rows = tuple(heard.decisions)
    known = np.array([*before, *rows], np.int64)
    return draw(judged, known, heard.lines, precision)


def answers_of(judged: Judged, given: NDArray[np.int64], people: Decisions) -> Answers:
    """Say what decisions mean for the labels.

    Args:
        judged: What the run itself said about M rows.
        given: (M,) given classes.
        people: What people decided.
    """
    count = len(judged.row)
    said = Answers(np.zeros(count, bool), np.full(count, _UNKNOWN), np.full(count, _UNKNOWN))
    rows = np.array(sorted(people), np.int64)
    for at in judged.places(rows).tolist():
        note(said, at, people[int(judged.row[at])], int(given[at]), int(judged.suggested[at]))
    return said


def note(said: Answers, at: int, decision: Decision | None, given: int, suggested: int) -> None:
    """Take over what is now decided about one line."""
    said.answered[at] = decision is not None
    said.wrong[at] = said.right[at] = _UNKNOWN
    if decision is None:
        return
    meant = meaning(decision, given)
    if meant.wrong is not None:
        said.wrong[at] = float(meant.wrong)
        said.right[at] = float(meant.vouched and meant.label == suggested)


def learn(
    plan: Plan,
    p_error: Floats,
    said: Answers,
    *,
    precision: float,
    seen: NDArray[np.bool_] | None = None,
) -> Learned | None:
    """Learn from all answers so far; None where they are fewer than a block.

    Args:
        plan: The sample.
        p_error: (M,) the run's own probabilities.
        said: What people said about the M rows.
        precision: What automatic relabels are promised to have at least.
        seen: (M,) rows whose answers the evidence has learned from; None: none.
    """
    if int(said.answered.sum()) < BLOCK:
        return None
    usable = np.isfinite(said.wrong) if seen is None else np.isfinite(said.wrong) & ~seen
    change = recalibrate(p_error[usable], said.wrong[usable] == 1)
    found = estimate(plan, p_error, said, precision=precision, guess=change(p_error))
    sampled = plan.complete(said.answered) > 0 or not plan.size.any()
    return Learned(change, found, sampled)
