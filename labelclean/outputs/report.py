"""The page: report.html, which opens from disk, and the same page for the review server."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pyarrow as pa

from labelclean.correction.actions import UNREADABLE
from labelclean.correction.kinds import rows_on_lists
from labelclean.correction.result import Audit
from labelclean.outputs.report_data import page_data, report_findings
from labelclean.outputs.report_pictures import Load, inline_thumbnails
from labelclean.outputs.report_records import read_neighbours
from labelclean.outputs.report_rows import (
    Neighbours,
    Row,
    choose_places,
    copies_of,
    fitting,
    page_rows,
)
from labelclean.outputs.run_json import run_facts
from labelclean.outputs.truth import Truth

FILE, SERVED = "file", "served"
STYLE = "page.css"
SCRIPTS = (
    "dom.js", "charts.js", "matrix.js", "overview.js", "sources.js", "filters.js", "gallery.js",
    "detail.js", "bulk.js", "keys.js", "page.js",
)  # fmt: skip
ROWS_BUDGET, PICTURES_BUDGET = 4_000_000, 11_000_000  # characters; with charts under 20 MB
NEAR_PICTURED = 250  # suspects whose neighbours are shown as pictures, too


def render_page(
    facts: Mapping[str, Any],
    issues: pa.Table,
    records: Path | None,
    *,
    truth: Truth | None = None,
    mode: str = SERVED,
    rows: Sequence[Row] = (),
    pictures: Mapping[str, str] | None = None,
    progress: Mapping[str, Any] | None = None,
) -> bytes:
    """Render the page from what a run folder holds.

    Args:
        facts: What run.json says.
        issues: issues.parquet.
        records: Path of records.parquet; None: nothing is said about training.
        truth: True labels, where they are known.
        mode: `served`: rows, pictures and decisions come from a server; `file`: all is inside.
        rows: The gallery, in `file` mode.
        pictures: Row to data URI, in `file` mode.
        progress: How far the review is, in `served` mode.
    """
    data = page_data(facts, report_findings(issues, facts["classes"]), records, truth)
    inside = {"rows": list(rows), "pictures": pictures or {}, "progress": progress}
    environment = _environment()
    page = environment.get_template("page.html").render(
        policy=content_policy(mode),
        style=_text(environment, STYLE),
        script=_script(environment),
        block=_block({"mode": mode, **data, **inside}),
        mode=mode,
        data=data,
    )
    return page.encode("utf-8", errors="replace")


def render_report(
    audit: Audit,
    issues: pa.Table,
    records: Path | None,
    load: Load | None,
    truth: Truth | None = None,
) -> bytes:
    """Render report.html.

    Args:
        audit: What to show.
        issues: The same as issues.parquet.
        records: Path of records.parquet; None: neither neighbours nor curves are shown.
        load: Reads a picture; None where the samples are no pictures.
        truth: True labels, where they are known.
    """
    lists = rows_on_lists(audit.beside) if audit.beside else {}
    places = choose_places(audit.action, list(lists.values()))
    rows = audit.row[places].tolist()
    neighbours: Neighbours = {}
    if records is not None and records.is_file():
        manifest = audit.manifest
        neighbours = read_neighbours(records, rows, manifest.label, manifest.classes)
    manifest = audit.manifest
    labels = manifest.label_values(manifest.label)
    copies = copies_of(issues, np.asarray(labels, dtype=object), manifest.split)
    shown = fitting(page_rows(issues, places, neighbours, copies), ROWS_BUDGET)
    pictures = {}
    if load is not None:
        pictures = inline_thumbnails(load, _pictured(shown), PICTURES_BUDGET)
    return render_page(
        run_facts(audit), issues, records, truth=truth, mode=FILE, rows=shown, pictures=pictures
    )


def content_policy(mode: str = SERVED) -> str:
    """Give the page's Content-Security-Policy: its own script and style, nothing from elsewhere."""
    environment = _environment()
    sources = ["default-src 'none'", f"script-src {_hash(_script(environment))}"]
    sources.append(f"style-src {_hash(_text(environment, STYLE))}")
    if mode == SERVED:
        sources += ["img-src 'self' data:", "connect-src 'self'"]
    else:
        sources.append("img-src data:")
    return "; ".join([*sources, "base-uri 'none'", "form-action 'none'"])


def _pictured(rows: Sequence[Row]) -> list[int]:
    """Give the rows to picture, each once: the suspects, then the neighbours of the first."""
    own = [row["row"] for row in rows if row["action"] != UNREADABLE]
    copies = [other["row"] for row in rows for other in row["copies"]]
    near = [other["row"] for row in rows[:NEAR_PICTURED] for other in row["neighbours"]]
    return list(dict.fromkeys(own + copies + near))


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("labelclean.outputs"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _text(environment: jinja2.Environment, name: str) -> str:
    """Give one of our own files as it is."""
    if environment.loader is None:
        raise ValueError("the page's files are part of the package")
    return environment.loader.get_source(environment, name)[0]


def _script(environment: jinja2.Environment) -> str:
    # One function around all: the files share names with each other and with nobody else.
    parts = "\n".join(_text(environment, f"js/{name}") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();'


def _block(data: Mapping[str, Any]) -> str:
    """Give JSON that no name in it can end: every `<`, `>` and `&` is escaped."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
