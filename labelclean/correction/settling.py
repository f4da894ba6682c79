"""What people decided, put over a judgement: their labels are believed, and their rows say so."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean.correction.decisions import DROP, NONE, UNSURE, Decisions, believe
from labelclean.correction.judging import Testimony, judge_testimony
from labelclean.correction.policy import Policy
from labelclean.correction.result import DROP as DROPPED
from labelclean.correction.result import KEEP, REVIEW, UNREADABLE, Audit
from labelclean.correction.result import RELABEL as RELABELLED
from labelclean.data.manifest import Manifest


def settle(
    manifest: Manifest, testimony: Testimony, facts: Mapping[str, object], policy: Policy
) -> Audit:
    """Judge with people's labels taken for right, then say what they decided about their rows.

    Args:
        manifest: The whole input, as it was given.
        testimony: What was observed, and what people decided.
        facts: Plain data to carry into run.json.
        policy: What to flag and what to do about it.
    """
    people = testimony.people
    judged = judge_testimony(believe(manifest, people), testimony, facts, policy=policy)
    return _settled(replace(judged, manifest=manifest), people) if people else judged


def _settled(audit: Audit, people: Decisions) -> Audit:
    """Put people's decisions over the judge's; a label they replaced was certainly wrong."""
    place = {int(row): at for at, row in enumerate(audit.row)}
    columns = {
        name: getattr(audit, name).copy()
        for name in ("suggested", "action", "p_error", "suspicion", "p_suggested", "reason")
    }
    wrong = []
    for row, decision in people.items():
        at = place.get(row)
        if at is None or audit.action[at] == UNREADABLE:
            continue
        own = int(audit.manifest.label[row])
        replaced = decision.label is not None and decision.label != own
        if replaced:
            _set(columns, at, decision.label, RELABELLED, "a person gave this label")
        elif decision.what in (DROP, NONE):
            _set(columns, at, own, DROPPED, "a person says no label fits" if decision.what == NONE
                 else "a person left it out")  # fmt: skip
        elif decision.what == UNSURE:
            _set(columns, at, own, REVIEW, "a person was not sure")
        else:
            _set(columns, at, own, KEEP, "a person confirmed the label")
            columns["p_error"][at] = 0.0
        if replaced or decision.what == NONE:
            wrong.append(at)
    columns["p_error"][wrong] = 1.0
    columns["suspicion"][wrong] = 1.0
    return _ranked(audit, columns, wrong)


def _set(
    columns: dict[str, NDArray[Any]], at: int, label: int | None, action: str, reason: str
) -> None:
    columns["suggested"][at], columns["action"][at], columns["reason"][at] = label, action, reason
    if action == RELABELLED:
        columns["p_suggested"][at] = 1.0


def _ranked(audit: Audit, columns: dict[str, NDArray[Any]], wrong: list[int]) -> Audit:
    """Move what is certainly wrong to the front, and count it in the noise rate."""
    front = np.zeros(len(audit.row), bool)
    front[wrong] = True
    order = np.argsort(~front, kind="stable")
    rate, (low, high) = audit.noise_rate, audit.noise_interval
    said = audit.diagnosis
    if wrong and rate is not None:
        mean = float(np.nanmean(columns["p_error"]))
        shift, rate = mean - rate, mean
        low, high = min(1.0, max(0.0, low + shift)), min(1.0, high + shift)
        said = (
            *said,
            f"People found {len(wrong)} more labels wrong; with them the rate is {rate:.1%} "
            f"({low:.1%} to {high:.1%}).",
        )
    return replace(
        audit,
        row=audit.row[order],
        signals={name: values[order] for name, values in audit.signals.items()},
        noise_rate=rate,
        noise_interval=(low, high),
        diagnosis=said,
        suggested=columns["suggested"][order],
        action=columns["action"][order],
        p_error=columns["p_error"][order],
        suspicion=columns["suspicion"][order],
        p_suggested=columns["p_suggested"][order],
        reason=columns["reason"][order],
    )
