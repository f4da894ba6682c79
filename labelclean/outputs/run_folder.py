"""Write the run folder: every file whole or not at all, run.json last."""

from pathlib import Path

from labelclean.atomic import write_bytes
from labelclean.correction.actions import UNREADABLE
from labelclean.correction.result import Audit
from labelclean.data.parquet import parquet_metadata, write_parquet
from labelclean.options import OpenProgress, no_progress
from labelclean.outputs.matrices import confusion, matrix_csv, matrix_png
from labelclean.outputs.report import render_report
from labelclean.outputs.report_pictures import Load
from labelclean.outputs.tables import corrected_table, issues_parquet_table
from labelclean.outputs.truth import Truth

RECORDS = "records.parquet"


def write_results(
    audit: Audit,
    folder: Path,
    *,
    load: Load | None,
    truth: Truth | None = None,
    progress: OpenProgress = no_progress,
) -> None:
    """Write everything but records, model and run.json.

    Args:
        audit: The result.
        folder: Where to write; records.parquet is there already, where there are records.
        load: Reads a picture for the report; None where the samples are no pictures.
        truth: True labels for the report, where they are known.
        progress: Opens a progress bar by name.
    """
    manifest = audit.manifest
    more = {
        "classes": list(manifest.classes),
        "input_digest": manifest.digest,
        "seed": audit.facts.get("seed"),
    }
    issues = issues_parquet_table(audit)
    for name, table in (("issues.parquet", issues), ("corrected.parquet", corrected_table(audit))):
        path = folder / name
        write_parquet(path, table, parquet_metadata(manifest, path, **more))
    _write_matrices(audit, folder)
    with progress("report"):
        page = render_report(audit, issues, folder / RECORDS, load, truth)
        write_bytes(folder / "report.html", page)


def _write_matrices(audit: Audit, folder: Path) -> None:
    classes = audit.manifest.classes
    readable = audit.action != UNREADABLE
    counts = confusion(audit.given[readable], audit.suggested[readable], len(classes))
    write_bytes(
        folder / "confusion_given_suggested.csv", matrix_csv(counts, classes, "given\\suggested")
    )
    picture = matrix_png(
        counts, classes, title="given and suggested labels", rows="given", columns="suggested"
    )
    write_bytes(folder / "confusion_given_suggested.png", picture)
    if audit.noise is None:
        return
    transition = audit.noise.transition
    write_bytes(folder / "noise_transition.csv", matrix_csv(transition, classes, "true\\given"))
    picture = matrix_png(
        transition, classes, title="P(given | true), estimated", rows="true", columns="given"
    )
    write_bytes(folder / "noise_transition.png", picture)
