"""What an audit says to a person at a terminal."""

import shlex
from typing import TYPE_CHECKING

import numpy as np

from labelclean.cli.text import printable
from labelclean.correction.actions import NO_BETTER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from labelclean.correction.result import Audit
    from labelclean.workflows.write import Run

_PAIRS, _ROWS, _IDS = 5, 10, 5
_ALWAYS = ("newly_flagged", "no_longer_flagged", "changed_suggestions")


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
    lines += _beside(audit)
    lines += against_truth(run.facts.get("truth"))
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
    flagged = np.flatnonzero(audit.waiting)[:_ROWS]
    if not len(flagged):
        return []
    names = audit.manifest.classes
    which = "Most suspect" if audit.decided is None else "Most suspect, not decided yet"
    lines = ["", f"{which} (row, picture, given -> suggested, probability of an error)"]
    for at in flagged:
        row = audit.row[at]
        given, suggested = audit.given[at], audit.suggested[at]
        better = str(names[suggested]) if suggested != given else NO_BETTER
        lines.append(
            f"  {row}  {printable(str(audit.manifest.path[row]))}  "
            f"{printable(str(names[given]))} -> {printable(better)}  {_percent(audit.p_error[at])}"
        )
    return lines


def _beside(audit: "Audit") -> list[str]:
    """List what else is wrong: outliers, duplicates and leaks, the surest or first ones by row."""
    if not audit.beside:
        return []
    from labelclean.correction.kinds import DUPLICATES, LEAKS, OUTLIERS, rows_on_lists

    lists, lines = rows_on_lists(audit.beside), ["", "Beside wrong labels"]
    odd = np.flatnonzero(lists[OUTLIERS])
    if len(odd):
        sure = np.nan_to_num(audit.signals.get("p_outlier", np.ones(len(audit.row)))[odd])
        odd = odd[np.argsort(-sure, kind="stable")]
        lines.append(f"  outliers    {len(odd)} rows show none of the classes: {_few(audit, odd)}")
    group = audit.beside["duplicate_group"]
    copies = np.flatnonzero(lists[DUPLICATES])
    if len(copies):
        copies = copies[np.lexsort((audit.row[copies], group[copies]))]
        lines.append(
            f"  duplicates  {len(copies)} rows in {len(np.unique(group[copies]))} groups show the "
            f"same picture: {_few(audit, copies)}"
        )
    leaks = np.flatnonzero(lists[LEAKS])
    if len(leaks):
        shown = ", ".join(
            f"{audit.row[at]} (also {audit.beside['leaks_to'][at]})" for at in leaks[:_IDS]
        )
        more = f" and {len(leaks) - _IDS} more" if len(leaks) > _IDS else ""
        lines.append(f"  leaks       {len(leaks)} rows are in another split too: {shown}{more}")
    lines += [f"  {printable(sentence)}" for sentence in audit.unknown]
    return lines if len(lines) > 2 else []


def _few(audit: "Audit", places: "NDArray[np.int64]") -> str:
    rows = ", ".join(map(str, audit.row[places[:_IDS]].tolist()))
    return f"row {rows}" + (f" and {len(places) - _IDS} more" if len(places) > _IDS else "")


def _percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.0%}"


def against_truth(truth: object) -> list[str]:
    """Say how good an audit was, where the truth is known."""
    if not isinstance(truth, dict):
        return []

    def shown(name: str, percent: bool = True) -> str:
        value = truth[name]
        return "-" if value is None else f"{value:.1%}" if percent else f"{value:.3f}"

    return [
        "",
        f"Against the truth ({printable(str(truth['column']))}, {truth['rows']} rows)",
        f"  wrong labels          {truth['wrong']}, of which {truth['found']} are flagged "
        f"({shown('recall')}); {shown('precision')} of the flagged are wrong",
        f"  ranking by p_error    AUROC {shown('auroc', False)}, average precision "
        f"{shown('ap', False)}",
        f"  right labels          {shown('label_accuracy_given')} as given, "
        f"{shown('label_accuracy_corrected')} corrected, {shown('label_accuracy_flagged')} with "
        "every suggestion taken",
    ]


def describe_changes(changes: "Mapping[str, object]") -> str:
    """Say what changed since an earlier run."""
    before, after = (changes[key] for key in ("noise_rate_before", "noise_rate_after"))
    rates = ["no estimate" if rate is None else f"{rate:.1%}" for rate in (before, after)]
    lines = ["", f"Since {printable(str(changes['run']))}: noise {rates[0]} then, {rates[1]} now"]
    for key, words in (
        ("changed_labels", "with another given label"),
        ("newly_flagged", "newly flagged"),
        ("no_longer_flagged", "no longer flagged"),
        ("changed_suggestions", "with another suggestion"),
        ("only_before", "rows of the earlier run that are not in this one"),
        ("only_after", "rows of this run that were not in the earlier one"),
    ):
        ids = changes[key]
        if not isinstance(ids, list) or (not ids and key not in _ALWAYS):
            continue
        few = ", ".join(printable(str(one)) for one in ids[:_IDS])
        more = f" and {len(ids) - _IDS} more" if len(ids) > _IDS else ""
        lines.append(f"  {len(ids)} {words}" + (f": {few}{more}" if ids else ""))
    return "\n".join(lines)
