"""Comparison with known true labels: the papers' matrices, and how good the audit was."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelclean.atomic import write_bytes
from labelclean.benchmark.metrics import auroc, average_precision, best_f1, f1
from labelclean.correction.actions import KEEP, RELABEL
from labelclean.correction.result import Audit
from labelclean.data.cells import cell_texts
from labelclean.data.manifest import Manifest
from labelclean.errors import ConfigError, DataError, shortlist
from labelclean.outputs.matrices import confusion, matrix_csv, matrix_png

UNKNOWN, OUTSIDE = -2, -1


@dataclass(frozen=True, slots=True)
class Truth:
    """True labels of N rows.

    Args:
        column: Where they come from.
        label: (N,) position in the manifest's classes; OUTSIDE for a class that no given label
            has, UNKNOWN where there is no true label.
    """

    column: str
    label: NDArray[np.int64]


def read_truth(manifest: Manifest, column: str) -> Truth:
    """Read a column of true labels.

    Raises:
        ConfigError: It is the label column itself.
        DataError: There is no such column, or it holds none of the classes.
    """
    if column == manifest.label_col:
        raise ConfigError(f"--truth-col {column!r} is the label column itself; name another.")
    if column not in manifest.table.column_names:
        raise DataError(
            f"{manifest.source} has no column {column!r} (--truth-col); it has "
            f"{shortlist(map(repr, manifest.table.column_names), 20)}."
        )
    return encode_truth(manifest, column, cell_texts(manifest.table.column(column)))


def encode_truth(manifest: Manifest, column: str, names: list[str]) -> Truth:
    """Turn true labels, as text, into classes of the manifest."""
    codes = {str(name): at for at, name in enumerate(manifest.classes)}
    label = np.array([codes.get(name, OUTSIDE if name else UNKNOWN) for name in names], np.int64)
    if not (label >= 0).any():
        raise DataError(
            f"{manifest.source}, column {column!r}: none of its values is a class "
            f"({shortlist(map(repr, codes))}); name the column with the true labels."
        )
    return Truth(column, label)


def truth_scores(audit: Audit, truth: Truth) -> dict[str, object]:
    """Say how good the audit was, on the rows it judged whose true label is known."""
    true = truth.label[audit.row]
    rows = (true != UNKNOWN) & ~np.isnan(audit.suspicion)
    given, true, action = audit.given[rows], true[rows], audit.action[rows]
    suggested, error = audit.suggested[rows], audit.p_error[rows]
    wrong, flagged = given != true, action != KEEP
    signal = audit.suspicion[rows] if np.isnan(error).any() else error
    moved = action == RELABEL
    after = np.where(moved, suggested, given)
    taken = np.where(flagged, suggested, given)
    rate = float(wrong.mean()) if len(wrong) else float("nan")
    found = int((flagged & wrong).sum())
    scores = {
        "noise_rate": rate,
        "noise_rate_error": None if audit.noise_rate is None else abs(audit.noise_rate - rate),
        "ap": average_precision(wrong, signal),
        "auroc": auroc(wrong, signal),
        "f1": f1(wrong, flagged),
        "best_f1": best_f1(wrong, signal) if wrong.any() else float("nan"),
        "precision": _share(found, int(flagged.sum())),
        "recall": _share(found, int(wrong.sum())),
        "relabelled_right": _share(int((after == true)[moved].sum()), int(moved.sum())),
        "label_accuracy_given": 1 - rate,
        "label_accuracy_corrected": float((after == true).mean()) if len(true) else None,
        "label_accuracy_flagged": float((taken == true).mean()) if len(true) else None,
    }
    return {
        "column": truth.column,
        "rows": len(true),
        "wrong": int(wrong.sum()),
        "found": found,
        "flagged": int(flagged.sum()),
        "outside_classes": int((true == OUTSIDE).sum()),
        **{name: _plain(value) for name, value in scores.items()},
    }


def write_truth(audit: Audit, truth: Truth, folder: Path) -> None:
    """Write given vs true and corrected vs true as .csv and .png, over all rows of known truth."""
    manifest = audit.manifest
    known = truth.label >= 0
    labels: Mapping[str, NDArray[np.int64]] = {
        "given": manifest.label,
        "corrected": audit.corrected(),
    }
    for name, label in labels.items():
        counts = confusion(label[known], truth.label[known], len(manifest.classes))
        stem = f"confusion_{name}_true"
        write_bytes(folder / f"{stem}.csv", matrix_csv(counts, manifest.classes, f"{name}\\true"))
        picture = matrix_png(
            counts, manifest.classes, title=f"{name} and true labels", rows=name, columns="true"
        )
        write_bytes(folder / f"{stem}.png", picture)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _plain(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else round(value, 6)
