"""What people decided, put over a judgement: their labels are believed, and their rows say so."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean.correction.actions import DROP, RELABEL, UNREADABLE
from labelclean.correction.decisions import Decisions, believe, meanings
from labelclean.correction.judging import judge_evidence
from labelclean.correction.kinds import FINE, MISLABELLED, OUTLIER
from labelclean.correction.policy import Policy
from labelclean.correction.result import Audit
from labelclean.data.manifest import Manifest
from labelclean.evidence.value import Evidence


def judge_with_decisions(
    manifest: Manifest, evidence: Evidence, facts: Mapping[str, object], policy: Policy
) -> Audit:
    """Judge with people's labels taken for right, then say what they decided about their rows.

    Args:
        manifest: The whole input, as it was given.
        evidence: What was observed, and what people decided.
        facts: Plain data to carry into run.json.
        policy: What to flag and what to do about it.
    """
    people = evidence.people
    judged = judge_evidence(believe(manifest, people), evidence, facts, policy=policy)
    return _decided(replace(judged, manifest=manifest), people) if people else judged


def _decided(audit: Audit, people: Decisions) -> Audit:
    """Put people's decisions over the judge's; a label they replaced was certainly wrong."""
    position = {int(row): at for at, row in enumerate(audit.row)}
    columns = {
        name: getattr(audit, name).copy()
        for name in ("suggested", "action", "p_error", "suspicion", "p_suggested", "reason")
    }
    columns["kind"] = audit.beside["kind"].copy()
    wrong = []
    for row, meant in meanings(audit.manifest, people).items():
        at = position.get(row)
        if at is None or audit.action[at] == UNREADABLE:
            continue
        columns["suggested"][at] = meant.label
        columns["action"][at], columns["reason"][at] = meant.action, meant.reason
        if meant.action == RELABEL:
            columns["p_suggested"][at] = 1.0
        if meant.wrong is not None:
            lost = OUTLIER if meant.action == DROP else MISLABELLED
            columns["kind"][at] = lost if meant.wrong else FINE
        if meant.wrong:
            wrong.append(at)
        elif meant.wrong is False:
            columns["p_error"][at] = 0.0
    columns["p_error"][wrong] = 1.0
    columns["suspicion"][wrong] = 1.0
    return _ranked(audit, columns, wrong)


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
        beside={
            name: values[order]
            for name, values in {**audit.beside, "kind": columns["kind"]}.items()
        },
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
