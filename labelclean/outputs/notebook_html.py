"""What a notebook shows of a run: the summary and the first suspects with their pictures."""

import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from labelclean.correction.actions import KEEP, NO_BETTER, UNREADABLE
from labelclean.correction.decisions import REASONS_OF_PEOPLE
from labelclean.outputs.report_pictures import Load, inline_thumbnails

SUSPECTS = 12
_BUDGET = 400_000
_CELL = "padding:2px 10px;text-align:left;vertical-align:middle"


def short_summary(facts: Mapping[str, Any]) -> list[str]:
    """Give the sentences a run begins with: how many rows, how noisy, what was decided."""
    counts = facts["counts"]
    decided = f"{counts['relabel']} relabelled, {counts['review']} to review, {counts['keep']} kept"
    if counts["unreadable"]:
        decided += f", {counts['unreadable']} unreadable"
    return [
        f"{counts['audited']} rows audited, {len(facts['classes'])} classes",
        *(str(sentence) for sentence in facts.get("diagnosis", ())),
        decided,
    ]


def first_suspects(issues: pa.Table) -> pa.Table:
    """Give the first flagged rows of issues.parquet that no person has decided."""
    action = issues.column("action")
    flagged = pc.and_(pc.not_equal(action, KEEP), pc.not_equal(action, UNREADABLE))
    decided = pc.is_in(issues.column("reason").cast(pa.string()), pa.array(REASONS_OF_PEOPLE))
    return issues.filter(pc.and_(flagged, pc.invert(decided))).slice(0, SUSPECTS)


def run_html(facts: Mapping[str, Any], issues: pa.Table, load: Load | None, folder: Path) -> str:
    """Give a run as a piece of HTML; text of the data is escaped, pictures are made anew.

    Args:
        facts: What run.json says.
        issues: The first suspects.
        load: Reads a picture; None where the samples are no pictures or not to be found.
        folder: The run folder.
    """
    lines = issues.to_pylist()
    rows = [line["row"] for line in lines]
    pictures = {} if load is None else inline_thumbnails(load, rows, _BUDGET)
    said = "<br>".join(html.escape(sentence) for sentence in short_summary(facts))
    body = "".join(_row(line, pictures.get(str(line["row"]))) for line in lines)
    heads = ("", "row", "sample", "given", "suggested", "probability of an error", "why")
    head = "".join(f'<th style="{_CELL}">{name}</th>' for name in heads)
    table = f"<table><tr>{head}</tr>{body}</table>" if lines else "<p>No row is flagged.</p>"
    where = html.escape(str(folder / "report.html"))
    return (
        f'<div class="labelclean"><p>{said}</p>{table}<p>All of it: <code>{where}</code></p></div>'
    )


def _row(line: Mapping[str, Any], picture: str | None) -> str:
    shown = "" if picture is None else f'<img src="{picture}" style="height:48px" alt="">'
    p_error = "-" if line["p_error"] is None else f"{line['p_error']:.0%}"
    given, better = line["label_given"], line["label_suggested"]
    words = (
        line["row"], line["path"] or line["sample_id"], given,
        NO_BETTER if better == given else better, p_error, line["reason"],
    )  # fmt: skip
    cells = "".join(f'<td style="{_CELL}">{html.escape(str(word))}</td>' for word in words)
    return f'<tr><td style="{_CELL}">{shown}</td>{cells}</tr>'
