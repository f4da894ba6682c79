"""What the page tells about a run as a whole, from run.json, issues.parquet and records.parquet."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from labelclean.correction.actions import DROP, KEEP, RELABEL, REVIEW, UNREADABLE
from labelclean.correction.kinds import DUPLICATES, LEAKS, OUTLIER, OUTLIERS
from labelclean.outputs.matrices import confusion
from labelclean.outputs.report_charts import (
    RowGroups,
    curves,
    histogram,
    matrix_chart,
    stage_histograms,
)
from labelclean.outputs.report_records import read_epoch_history
from labelclean.outputs.truth import UNKNOWN, Truth

SIGNAL_NAMES = {
    "p_error": "p_error: the given label is wrong",
    "p_given": "p(y|x) of the given label",
    "attention": "attention τ of NAL",
}
LISTED_CLASSES = 300
TURNING = frozenset(map(chr, (0x202A, 0x202B, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068)))
"""Marks that change the direction of all that follows them."""


@dataclass(frozen=True, slots=True)
class ReportFindings:
    """Columns of issues.parquet, M rows in the order of the ranking.

    Args:
        row: (M,) input rows.
        given: (M,) class.
        suggested: (M,) class.
        action: (M,) text.
        signals: Column to (M,) numbers, NaN where there is none.
    """

    row: NDArray[np.int64]
    given: NDArray[np.int64]
    suggested: NDArray[np.int64]
    action: NDArray[np.object_]
    signals: Mapping[str, NDArray[np.float64]]


def report_findings(issues: pa.Table, classes: list[Any]) -> ReportFindings:
    """Take the columns of issues.parquet that charts are made of."""
    names = pa.array(classes, issues.schema.field("label_given").type)
    codes = {
        name: pc.index_in(issues[name], value_set=names).to_numpy().astype(np.int64)
        for name in ("label_given", "label_suggested")
    }
    return ReportFindings(
        row=issues["row"].to_numpy(),
        given=codes["label_given"],
        suggested=codes["label_suggested"],
        action=np.asarray(issues["action"].to_numpy(), dtype=object),
        signals={name: issues[name].to_numpy().astype(np.float64) for name in SIGNAL_NAMES},
    )


def page_data(
    facts: Mapping[str, Any], found: ReportFindings, records: Path | None, truth: Truth | None
) -> dict[str, Any]:
    """Give everything about the run as a whole, as plain data.

    Args:
        facts: What run.json says.
        found: What issues.parquet says.
        records: records.parquet; None: nothing is said about training.
        truth: True labels, where they are known.
    """
    classes = facts["classes"]
    readable = found.action != UNREADABLE
    counts = confusion(found.given[readable], found.suggested[readable], len(classes))
    transition = facts.get("noise_transition")
    by_action = {
        name: found.action == name
        for name in (KEEP, RELABEL, REVIEW, DROP)
        if (found.action == name).any()
    }
    by_truth = {} if truth is None else _by_truth(found.given, truth.label[found.row])
    return {
        "name": str(facts["input"]["name"]),
        "digest": str(facts["input"]["digest"]),
        "classes": [str(name) for name in classes],
        "counts": facts["counts"],
        "lists": _lists(facts),
        "unknown": list((facts.get("findings") or {}).get("unknown", ())),
        "noise_rate": facts["noise_rate"],
        "noise_interval": facts["noise_rate_interval"],
        "diagnosis": [isolated(sentence, classes) for sentence in facts["diagnosis"]],
        "class_noise": _class_noise(facts, np.bincount(found.given, minlength=len(classes))),
        "confusion": matrix_chart(counts, counts=True),
        "transition": None
        if transition is None
        else matrix_chart(np.array(transition, np.float64), counts=False),
        "by_action": _distributions(found, by_action),
        "by_truth": _distributions(found, by_truth),
        "quality": facts.get("signal_quality", {}),
        "truth": facts.get("truth"),
        "about": _about(facts),
        **_training(found, records, truth),
    }


def _lists(facts: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    """Give name, rows and meaning of every list of findings beside wrong labels that has rows."""
    found = facts.get("findings") or {}
    kinds, copies = found.get("kinds", {}), found.get("duplicates", {})
    groups = copies.get("groups", 0)
    entries = (
        (OUTLIERS, kinds.get(OUTLIER, 0), "they seem to show none of the classes"),
        (DUPLICATES, copies.get("rows", 0), f"the same picture again, {groups} groups"),
        (LEAKS, found.get("leaks", 0), "the same picture is in another split"),
    )
    return [entry for entry in entries if entry[1]]


def isolated(sentence: str, names: list[Any]) -> str:
    """Keep names that turn the writing around from turning the rest of a sentence."""
    for name in map(str, names):
        if TURNING & set(name):
            # First strong isolate and pop directional isolate: what is inside stays inside.
            sentence = sentence.replace(name, f"\u2068{name}\u2069")
    return sentence


def _distributions(found: ReportFindings, groups: RowGroups) -> list[dict[str, Any]]:
    charts = (histogram(title, found.signals[name], groups) for name, title in SIGNAL_NAMES.items())
    return [chart for chart in charts if chart is not None]


def _by_truth(given: NDArray[np.int64], true: NDArray[np.int64]) -> RowGroups:
    known = true != UNKNOWN
    return {"label right": known & (given == true), "label wrong": known & (given != true)}


def _training(found: ReportFindings, records: Path | None, truth: Truth | None) -> dict[str, Any]:
    if records is None or not records.is_file():
        return {"stages": [], "curves": []}
    history = read_epoch_history(records)
    true = None if truth is None else truth.label[history.row]
    if true is None:
        last = max(int(part.max(initial=0)) for part in (history.row, found.row))
        flagged = np.zeros(last + 1, bool)
        flagged[found.row[found.action != KEEP]] = True
        flagged = flagged[history.row]
        groups: RowGroups = {"kept": ~flagged, "flagged": flagged}
    else:
        groups = _by_truth(history.label, true)
    return {"stages": stage_histograms(history, groups), "curves": curves(history, groups, true)}


def _class_noise(facts: Mapping[str, Any], rows: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Give classes with rows, the noisiest first."""
    entries = [
        {"label": str(entry["label"]), "rows": int(count), "rate": entry["noise_rate"],
         "interval": entry["interval"]}
        for entry, count in zip(facts["class_noise"], rows, strict=False)
        if count and entry["noise_rate"] is not None
    ]  # fmt: skip
    return sorted(entries, key=lambda entry: -float(entry["rate"]))[:LISTED_CLASSES]


def _about(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Say how the run was made, in pairs of name and value."""
    loss, backbone = facts.get("loss"), facts.get("backbone")
    said = [("seed", facts.get("seed"))]
    if loss:
        params = ", ".join(f"{name}={value}" for name, value in sorted(loss["params"].items()))
        said.append(("loss", f"{loss['name']}({params})" if params else loss["name"]))
    if backbone:
        said.append(("backbone", f"{backbone['name']} at {backbone['image_size']} px"))
    if facts.get("epochs"):
        said.append(("epochs", facts["epochs"]))
    for name, share in (facts.get("held_out_accuracy") or {}).items():
        said.append((f"accuracy, {name}", f"{share:.1%}"))
    for name, rows in (facts.get("held_out_leaks") or {}).items():
        said.append((f"leaks into {name}", _leaked(facts, name, rows)))
    return [(name, str(value)) for name, value in said if value is not None]


def _leaked(facts: Mapping[str, Any], name: str, rows: int) -> str:
    """Say how many rows of a held-out split were trained on as well, and what that is worth."""
    without = facts.get("held_out_accuracy_without_leaks", {}).get(name)
    rest = "no row is left" if without is None else f"accuracy {without:.1%}"
    return f"{rows} rows show a picture that was trained on; without them {rest}"
