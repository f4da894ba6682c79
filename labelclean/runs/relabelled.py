"""The labels of a finished run: as given, as corrected, as people decided, and the true ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from labelclean.correction.actions import DROP, RELABEL, UNREADABLE
from labelclean.correction.decisions import meanings
from labelclean.correction.outcome import Findings
from labelclean.data.cells import cell_texts
from labelclean.data.manifest import Label, Manifest
from labelclean.data.read import read_manifest
from labelclean.data.tables import parse_origin
from labelclean.errors import ConfigError, DataError, shortlist
from labelclean.outputs.truth import OUTSIDE, UNKNOWN
from labelclean.runs.again import findings_with
from labelclean.runs.decisions_file import read_decisions
from labelclean.runs.reading import OpenedRun, StoredRun

CORRECTED = "corrected.parquet"


@dataclass(frozen=True, slots=True)
class Relabelled:
    """N rows and their labels.

    Args:
        manifest: The samples; `label` holds the corrected ones, `verified` what people decided.
        given: (N,) the labels before.
        audited: (N,) rows that were audited and could be read.
        kept: (N,) those of them that are left in.
        trust: (N,) how likely the corrected label is right; 1 where a person vouched for it or
            nothing is known.
        truth: (N,) true labels; OUTSIDE for a class nobody was given, UNKNOWN; None: not known.
        decided: How many rows people decided.
    """

    manifest: Manifest
    given: NDArray[np.int64]
    audited: NDArray[np.bool_]
    kept: NDArray[np.bool_]
    trust: NDArray[np.float64]
    truth: NDArray[np.int64] | None
    decided: int


def read_relabelled(
    run: StoredRun,
    *,
    decisions: Path | None = None,
    truth_col: str | None = None,
    latest: Path | None = None,
) -> Relabelled:
    """Read what a run made of its manifest.

    Args:
        run: The run.
        decisions: decisions.jsonl; what people decided stands above what the run did.
        truth_col: Column of the manifest with the true labels.
        latest: Folder of a later round about the same rows, whose labels count; None: the run's.

    Raises:
        DataError: A file is missing, damaged, or belongs to another run.
        ConfigError: The column of true labels is the label column.
    """
    table = _read_corrected(run.folder / CORRECTED, run)
    final = table if latest is None else _read_corrected(latest / CORRECTED, run)
    name = str(run.facts["columns"]["label"])
    classes = tuple(run.facts["classes"])
    given = _codes(table, "label_given", classes, run)
    label = _codes(final, name, classes, run)
    manifest = replace(_samples(run), classes=classes, label=given, label_col=name)
    action = np.array(final["label_action"].to_pylist(), dtype=object)
    trust, wrong = _floats(final, "label_confidence", 1.0), _floats(final, "p_error", 0.0)
    if decisions is not None and latest is None:
        # What people found tells about rows they did not look at, too.
        as_given = replace(manifest, digest=str(run.facts["input"]["digest"]))
        found = findings_with(OpenedRun(run.folder, run.facts, as_given), decisions)
        label, action, trust, wrong = _as_found(found, given)
    audited = np.array([done is not None and done != UNREADABLE for done in action])
    kept, verified = audited & (action != DROP), manifest.verified.copy()
    people = {} if decisions is None else read_decisions(decisions, manifest)
    for row, meant in meanings(manifest, people).items():
        label[row] = meant.label
        kept[row] = audited[row] and meant.kept
        verified[row] |= meant.vouched
        trust[row] = 1 - wrong[row]  # the run's confidence is about its own label, not the given
    trust[verified] = 1.0
    return Relabelled(
        manifest=replace(manifest, label=label, verified=verified),
        given=given,
        audited=audited,
        kept=kept,
        trust=trust,
        truth=None if truth_col is None else _truth(table, truth_col, name, classes, run),
        decided=len(people),
    )


def _as_found(
    found: Findings, given: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.object_], NDArray[np.float64], NDArray[np.float64]]:
    """(N,) label, action, trust and probability of an error of all rows, as corrected.parquet."""
    label, action = given.copy(), np.full(len(given), None, dtype=object)
    trust, wrong = np.ones(len(given)), np.zeros(len(given))
    moved = (found.action == RELABEL) & (found.suggested != given[found.row])
    label[found.row[moved]] = found.suggested[moved]
    action[found.row] = found.action
    wrong[found.row] = np.nan_to_num(found.p_error, nan=0.0)
    trust[found.row] = np.where(moved, found.p_suggested, 1 - wrong[found.row])
    return label, action, trust, wrong


def _samples(run: StoredRun) -> Manifest:
    """Read the samples: pictures through the corrected table, arrays where they came from."""
    image = run.facts["columns"]["image"]
    if image is not None:
        return read_manifest(
            run.folder / CORRECTED,
            image_col=image,
            allow_outside_root=run.recipe.data.allow_outside_root,
            need_labels=False,
            budget=run.recipe.data.budget,
        )
    path = run.folder / str(run.facts["input"].get("path", ""))
    if not path.is_file():
        raise DataError(
            f"the samples of {run.folder} are arrays, and {path} is no longer there; put it back."
        )
    data = run.recipe.data
    label = str(run.facts["columns"]["label"])  # an even part is taken by it
    manifest = read_manifest(path, limit=data.limit, label_col=label, budget=data.budget)
    if manifest.digest != run.facts["input"]["digest"]:
        raise DataError(
            f"{path} was changed since it was audited (digest {manifest.digest}, audited "
            f"{run.facts['input']['digest']}); put the audited file back, or audit again."
        )
    if manifest.arrays is None:
        raise DataError(f"{path} holds no arrays to train on; audit a manifest of pictures.")
    return manifest


def _read_corrected(path: Path, run: StoredRun) -> pa.Table:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        why = (str(error).splitlines() or ["unknown reason"])[0]
        raise DataError(f"{path} cannot be read ({why}); audit the data again.") from error
    digest = parse_origin(path, table.schema.metadata or {}).get("input_digest")
    own = ("label_given", "label_action", "label_confidence", "p_error")
    needed = {*own, str(run.facts["columns"]["label"])}
    if digest != run.facts["input"]["digest"] or not needed <= set(table.column_names):
        raise DataError(
            f"{path} does not belong to this run; put its own file back, or audit the data again."
        )
    return table


def _floats(table: pa.Table, name: str, otherwise: float) -> NDArray[np.float64]:
    values = np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.nan_to_num(values, nan=otherwise)


def _codes(
    table: pa.Table, name: str, classes: Sequence[Label], run: StoredRun
) -> NDArray[np.int64]:
    known: Mapping[Label, int] = {label: code for code, label in enumerate(classes)}
    values = table[name].to_pylist()
    strange = [value for value in values if value not in known]
    if strange:
        raise DataError(
            f"{run.folder / CORRECTED}, column {name!r} holds labels the run does not know "
            f"({shortlist(map(repr, dict.fromkeys(strange)))}); audit the data again."
        )
    return np.array([known[value] for value in values], dtype=np.int64)


def _truth(
    table: pa.Table, column: str, label: str, classes: Sequence[Label], run: StoredRun
) -> NDArray[np.int64]:
    if column == label:
        raise ConfigError(f"--truth-col {column!r} is the label column itself; name another.")
    if column not in table.column_names:
        raise DataError(
            f"{run.folder / CORRECTED} has no column {column!r} (--truth-col); it has "
            f"{shortlist(map(repr, table.column_names), 20)}."
        )
    known = {str(name): code for code, name in enumerate(classes)}
    texts = cell_texts(table.column(column))
    truth = np.array([known.get(text, OUTSIDE if text else UNKNOWN) for text in texts], np.int64)
    if not (truth >= 0).any():
        raise DataError(
            f"{run.folder / CORRECTED}, column {column!r}: none of its values is a class; name the "
            "column with the true labels."
        )
    return truth
