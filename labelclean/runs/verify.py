"""What holds for every finished run folder, checked from what stands in it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelclean.correction.actions import ACTIONS
from labelclean.data.read import read_manifest
from labelclean.data.settings import DataSettings
from labelclean.errors import DataError, shortlist
from labelclean.outputs.run_folder import RECORDS
from labelclean.outputs.schema import CORRECTED_COLUMNS, issues_schema, label_type
from labelclean.runs.check import CONTENT, changed_samples
from labelclean.runs.decisions_file import read_history
from labelclean.runs.digests import RETRAIN, ROUND_FOLDERS, foreign_files
from labelclean.runs.evidence_store import read_evidence
from labelclean.runs.folder import RunFolder
from labelclean.runs.issues import ISSUES, read_run_table
from labelclean.runs.reading import open_audited, run_facts_alone
from labelclean.runs.relabelled import CORRECTED

_DECISIONS = "decisions.jsonl"


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found in a run folder.

    Args:
        files: How many files run.json stands for.
        rows: How many rows were audited.
        decisions: How many lines of decisions there are.
        faults: What must not be; a whole folder has none.
        notes: What could not be compared, and why.
    """

    files: int = 0
    rows: int = 0
    decisions: int = 0
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def verify_run(folder: Path, manifest: Path | None = None) -> Verified:
    """Check the folder of an audit or a retraining, and what came after the audit.

    Args:
        folder: The run folder.
        manifest: Where the audited manifest is now; None: where it was.

    Raises:
        DataError: It holds no finished run.
    """
    facts = run_facts_alone(folder)
    faults = [f"{name} is not the file run.json names" for name in foreign_files(folder, facts)]
    faults += [f"{name} is gone" for name in facts["files"] if not (folder / name).is_file()]
    notes: list[str] = []
    rows = decisions = 0
    if facts.get("kind") != RETRAIN:
        try:
            tables = _Tables(folder, {**facts, "files": {}})  # their digests are known by now
            faults += [*_issue_faults(tables), *_corrected_faults(tables)]
            faults += _evidence_faults(tables)
            rows, decisions = tables.issues.num_rows, _decisions(tables, notes)
            faults += _sample_faults(tables, manifest, notes)
        except DataError as error:
            faults.append(str(error))
    for after in (folder / RETRAIN, *sorted(folder.glob(ROUND_FOLDERS))):
        if RunFolder(after).complete:
            faults += _later_faults(after, facts, manifest)
    return Verified(len(facts["files"]), rows, decisions, faults, notes)


def _later_faults(folder: Path, facts: Mapping[str, Any], manifest: Path | None) -> list[str]:
    """Check what came after an audit: whole in itself, and about the same data."""
    try:
        faults = verify_run(folder, manifest).faults
        if run_facts_alone(folder)["input"]["digest"] != facts["input"]["digest"]:
            faults.append("it is about other data than the run it stands in")
    except DataError as error:
        faults = [str(error)]
    return [f"{folder.name}: {fault}" for fault in faults]


class _Tables:
    """The tables of a run.

    Raises:
        DataError: One cannot be read, or is of another run.
    """

    def __init__(self, folder: Path, facts: Mapping[str, Any]) -> None:
        self.folder, self.facts = folder, facts
        self.issues = read_run_table(folder / ISSUES, facts)
        self.corrected = read_run_table(folder / CORRECTED, facts)
        self.records = read_run_table(folder / RECORDS, facts)
        self.label = str(facts["columns"]["label"])
        wanted = issues_schema(label_type(tuple(facts["classes"])))
        if not self.issues.schema.remove_metadata().equals(wanted):
            raise DataError(f"{ISSUES} has other columns or types than it must have")
        absent = {*CORRECTED_COLUMNS, self.label} - set(self.corrected.column_names)
        if absent:
            raise DataError(f"{CORRECTED} has no column {shortlist(sorted(absent))}")
        self.row: NDArray[np.int64] = self.issues["row"].to_numpy()


def _issue_faults(tables: _Tables) -> list[str]:
    """Every audited row once, in the order of its rank, and as many as run.json counts."""
    issues, row, counts = tables.issues, tables.row, tables.facts["counts"]
    faults = []
    if len(np.unique(row)) != len(row) or counts.get("audited") != len(row):
        faults.append(f"{ISSUES} does not hold every audited row once")
    if not np.array_equal(issues["rank"].to_numpy(), np.arange(1, len(row) + 1)):
        faults.append(f"{ISSUES} is not in the order of its ranks")
    actions = Counter(issues["action"].to_pylist())
    wrong = [name for name in ACTIONS if counts.get(name, 0) != actions.get(name, 0)]
    if wrong or set(actions) - set(ACTIONS):
        faults.append(f"{ISSUES} and run.json count other actions ({shortlist(wrong)})")
    strange = set(issues["label_suggested"].to_pylist()) - set(tables.facts["classes"])
    if strange:
        faults.append(f"{ISSUES} suggests labels that are no classes ({shortlist(strange)})")
    return faults


def _corrected_faults(tables: _Tables) -> list[str]:
    """The rows of the input, each with what the issues say about it."""
    corrected, row = tables.corrected, tables.row
    count = tables.facts["input"].get("rows")
    if corrected.num_rows != count:
        return [f"{CORRECTED} has {corrected.num_rows} rows, and the input {count}"]
    action = np.array(corrected["label_action"].to_pylist(), dtype=object)
    audited = np.flatnonzero(action != None)  # noqa: E711 (one by one)
    if not np.array_equal(audited, np.sort(row)):
        return [f"{CORRECTED} and {ISSUES} are not about the same rows"]
    faults = []
    place = pa.array(row)
    for one, other in (("label_action", "action"), ("label_given", "label_given")):
        if corrected[one].take(place).to_pylist() != tables.issues[other].to_pylist():
            faults.append(f"{one} of {CORRECTED} is not {other} of {ISSUES}")
    final = corrected[tables.label].take(place).to_pylist()
    given, moved = (tables.issues[name].to_pylist() for name in ("label_given", "label_suggested"))
    done = tables.issues["action"].to_pylist()
    wanted = [
        new if what == "relabel" else old for old, new, what in zip(given, moved, done, strict=True)
    ]
    if final != wanted:
        faults.append(f"labels of {CORRECTED} are not what {ISSUES} decided")
    return faults


def _evidence_faults(tables: _Tables) -> list[str]:
    """Each line of evidence names its own sample, and every audited row has its line."""
    evidence = read_evidence(tables.folder / RECORDS)
    unseen = np.array([*evidence.unreadable, *evidence.left_out.tolist()], np.int64)
    about = np.sort(np.concatenate([evidence.row, unseen]))
    if not np.array_equal(about, np.sort(tables.row)):
        return [f"{RECORDS} and {ISSUES} are not about the same rows"]
    names = dict(zip(tables.row.tolist(), tables.issues["sample_id"].to_pylist(), strict=True))
    stored = tables.records["sample_id"].to_pylist()
    strange = [
        row for row, name in zip(evidence.row.tolist(), stored, strict=True) if names[row] != name
    ]
    if strange:
        return [f"the evidence of rows {shortlist(strange)} is about other samples"]
    return []


def _decisions(tables: _Tables, notes: list[str]) -> int:
    """Count the lines of decisions.

    Raises:
        DataError: Lines are no decisions about these rows.
    """
    path = tables.folder / _DECISIONS
    if not path.is_file():
        return 0
    rows = read_manifest(
        tables.folder / CORRECTED,
        image_col=tables.facts["columns"]["image"],
        need_labels=False,
        need_images=False,
        budget=float(tables.facts["recipe"]["data"].get("budget", 1)),
    )
    history = read_history(path, replace(rows, classes=tuple(tables.facts["classes"])), torn=True)
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        notes.append(f"the last line of {_DECISIONS} was cut off; the next review moves it away")
    return len(history.log)


def _sample_faults(tables: _Tables, manifest: Path | None, notes: list[str]) -> list[str]:
    """Compare the rows with the audited data, as far as that is there."""
    facts = tables.facts
    try:
        samples = open_audited(tables.folder, manifest).manifest
        settings = DataSettings(**facts["recipe"]["data"])
    except (DataError, TypeError) as error:
        notes.append(f"not compared with the audited data: {error}")
        return []
    faults = []
    names = tables.issues["sample_id"].to_pylist()
    if names != samples.sample_id[tables.row].tolist():
        faults.append(f"{ISSUES} names other samples than the audited data")
    if CONTENT not in tables.records.column_names or "features" in facts["input"]:
        return faults
    changed, gone = changed_samples(tables.records, samples, settings)
    if changed:
        faults.append(f"the samples of rows {shortlist(changed)} were changed since the audit")
    if gone:
        notes.append(f"the samples of rows {shortlist(gone)} can no longer be read")
    return faults
