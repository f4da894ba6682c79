"""Write the run folder: every file whole or not at all, run.json last."""

from pathlib import Path

from labelclean.atomic import write_bytes
from labelclean.data.parquet import parquet_metadata, write_parquet
from labelclean.outputs.matrices import confusion, matrix_csv, matrix_png
from labelclean.outputs.report import Load, render_report
from labelclean.outputs.tables import corrected_table, issues_table
from labelclean.result import UNREADABLE, Audit


def write_results(audit: Audit, folder: Path, *, load: Load | None) -> None:
    """Write everything but records, model and run.json.

    Args:
        audit: The result.
        folder: Where to write.
        load: Reads a picture for the report; None where the samples are no pictures.
    """
    manifest = audit.manifest
    more = {
        "classes": list(manifest.classes),
        "input_digest": manifest.digest,
        "seed": audit.facts.get("seed"),
    }
    for name, table in (
        ("issues.parquet", issues_table(audit)),
        ("corrected.parquet", corrected_table(audit)),
    ):
        path = folder / name
        write_parquet(path, table, parquet_metadata(manifest, path, **more))
    figures = _write_matrices(audit, folder)
    write_bytes(folder / "report.html", render_report(audit, figures, load))


def _write_matrices(audit: Audit, folder: Path) -> dict[str, bytes]:
    classes = audit.manifest.classes
    readable = audit.action != UNREADABLE
    counts = confusion(audit.given[readable], audit.suggested[readable], len(classes))
    figures = {
        "Given and suggested labels": matrix_png(
            counts, classes, title="given and suggested labels", rows="given", columns="suggested"
        )
    }
    write_bytes(
        folder / "confusion_given_suggested.csv", matrix_csv(counts, classes, "given\\suggested")
    )
    write_bytes(folder / "confusion_given_suggested.png", figures["Given and suggested labels"])
    if audit.noise is None:
        return figures
    transition = audit.noise.transition
    title = "How true labels became given labels"
    figures[title] = matrix_png(
        transition, classes, title="P(given | true), estimated", rows="true", columns="given"
    )
    write_bytes(folder / "noise_transition.csv", matrix_csv(transition, classes, "true\\given"))
    write_bytes(folder / "noise_transition.png", figures[title])
    return figures
