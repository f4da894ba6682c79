"""What an audit says to a person at a terminal."""

import shlex
from typing import TYPE_CHECKING

import numpy as np

from labelclean.cli.text import printable

if TYPE_CHECKING:
    from labelclean.auditing import Run
    from labelclean.result import Audit

_PAIRS, _ROWS = 5, 10


def summarise(run: "Run") -> str:
    """Give the summary of a finished audit as lines of text."""
    audit = run.audit
    counts = audit.counts()
    lines = [f"{counts['audited']} rows audited, {len(audit.manifest.classes)} classes"]
    lines += [printable(sentence) for sentence in audit.diagnosis]
    lines.append(
        f"{counts['relabel']} relabelled, {counts['review']} to review, {counts['keep']} kept"
        + (f", {counts['drop']} to drop" if counts["drop"] else "")
        + (f", {counts['unreadable']} unreadable" if counts["unreadable"] else "")
    )
    lines += _pairs(audit)
    lines += _suspects(audit)
    folder = printable(shlex.quote(str(run.folder)))
    lines += [
        "",
        f"Look at       {folder}/report.html",
        f"All rows      {folder}/issues.parquet",
        f"Clean labels  {folder}/corrected.parquet",
    ]
    return "\n".join(lines)


def _pairs(audit: "Audit") -> list[str]:
    names = audit.manifest.classes
    moved = np.flatnonzero(audit.suggested != audit.given)
    pairs, counts = np.unique(
        np.stack([audit.given[moved], audit.suggested[moved]]), axis=1, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")[:_PAIRS]
    if not len(order):
        return []
    lines = ["", "Most confused (given, suggested, rows)"]
    for at in order:
        given, suggested = (printable(str(names[c])) for c in pairs[:, at])
        lines.append(f"  {given} -> {suggested}  {counts[at]}")
    return lines


def _suspects(audit: "Audit") -> list[str]:
    flagged = np.flatnonzero((audit.action != "keep") & (audit.action != "unreadable"))[:_ROWS]
    if not len(flagged):
        return []
    names = audit.manifest.classes
    lines = ["", "Most suspect (row, picture, given -> suggested, probability of an error)"]
    for at in flagged:
        row = audit.row[at]
        given, suggested = (str(names[c]) for c in (audit.given[at], audit.suggested[at]))
        lines.append(
            f"  {row}  {printable(str(audit.manifest.path[row]))}  "
            f"{printable(given)} -> {printable(suggested)}  {audit.p_error[at]:.0%}"
        )
    return lines
