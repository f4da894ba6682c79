"""The tables of a finished run, read back: every audited row once, and nothing of another run."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from labelclean.correction.outcome import Findings
from labelclean.data.budget import Budget
from labelclean.data.tables import parse_origin
from labelclean.errors import DataError, LabelCleanError, shortlist
from labelclean.runs.reading import OpenedRun

ISSUES = "issues.parquet"
_KIND, _PLACES = "kind", ("duplicate_group", "leaks_to")
BESIDE = (_KIND, *_PLACES)
"""Columns that say what else is wrong with a row, as far as exports ask for it."""


def read_issues(run: OpenedRun) -> pa.Table:
    """Read issues.parquet of a run.

    Raises:
        DataError: It is missing, damaged, or belongs to another run.
    """
    path = run.folder / ISSUES
    table = read_run_table(path, run.facts)
    faults = _column_faults(table)
    if faults:
        raise DataError(f"{path} is no table of issues ({shortlist(faults)}); audit again.")
    require_rows(path, table["row"].to_numpy(), run)
    if (pc.max(table["leaks_to"]).as_py() or 0) >= len(run.manifest):
        raise DataError(f"{path} speaks of rows the manifest does not have; audit again.")
    return table


def require_rows(path: Path, row: NDArray[np.int64], run: OpenedRun) -> None:
    """Refuse a table of a run that is not about every audited row once.

    Raises:
        DataError: Rows are missing, stand twice, or are none of the manifest's.
    """
    count = len(run.manifest)
    if len(row) and not (row.min() >= 0 and row.max() < count):
        raise DataError(f"{path} speaks of rows the manifest does not have; audit again.")
    if len(np.unique(row)) != len(row) or len(row) != run.facts["counts"].get("audited"):
        raise DataError(
            f"{path} is not about every audited row once: it has {len(np.unique(row))} rows in "
            f"{len(row)} lines, and run.json says {run.facts['counts'].get('audited')}. Put the "
            "run's own file back, or audit again."
        )


def _column_faults(table: pa.Table) -> list[str]:
    wanted: dict[str, Callable[[pa.DataType], bool]] = {
        "row": pa.types.is_int64,
        "sample_id": pa.types.is_string,
        "label_suggested": lambda kind: pa.types.is_string(kind) or pa.types.is_integer(kind),
        "action": pa.types.is_string,
        "p_error": pa.types.is_floating,
        "p_suggested": pa.types.is_floating,
        _KIND: lambda kind: pa.types.is_string(kind) or pa.types.is_null(kind),
        **dict.fromkeys(_PLACES, pa.types.is_int64),
    }
    faults = [f"no column {name}" for name in wanted if name not in table.column_names]
    if faults:
        return faults
    for name, fits in wanted.items():
        kind = table.schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not fits(kind):
            faults.append(f"{name} is of type {kind}")
    complete = ("row", "sample_id", "label_suggested", "action")
    faults += [f"{name} has nulls" for name in complete if table[name].null_count]
    return faults


def read_run_table(path: Path, facts: Mapping[str, Any]) -> pa.Table:
    """Read a Parquet file of a run folder; refuse one of another run."""
    if not path.is_file():
        raise DataError(f"{path} is missing; audit the data again.")
    try:
        # Compared and read through one handle: whoever replaces the file leaves this one alone.
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
            _require_claim(path, pq.read_metadata(file), facts)
            table = pq.read_table(file)
    except LabelCleanError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        reason = (str(error).splitlines() or ["unknown reason"])[0]
        raise DataError(f"{path} is no complete Parquet file ({reason}); audit again.") from error
    if found != facts["files"].get(path.name, found):
        raise DataError(
            f"{path} does not belong to this run: it was replaced while the run was read. Try "
            "again when nobody writes there."
        )
    digest = parse_origin(path, table.schema.metadata or {}).get("input_digest")
    if digest != facts["input"]["digest"]:
        raise DataError(
            f"{path} does not belong to this run: it is about the input {digest}, run.json about "
            f"{facts['input']['digest']}. Put the run's own file back, or audit again."
        )
    return table


def _require_claim(path: Path, claimed: pq.FileMetaData, facts: Mapping[str, Any]) -> None:
    """Refuse a table that claims more than the run's own manifest might."""
    budget = Budget(float(facts["recipe"].get("data", {}).get("budget", 1)))
    budget.require_rows(path, claimed.num_rows)
    sizes = (claimed.row_group(at).total_byte_size for at in range(claimed.num_row_groups))
    budget.require_unpacked(path, sum(sizes), path.stat().st_size)


def read_findings(run: OpenedRun) -> Findings:
    """Read what a run found about its rows.

    Raises:
        DataError: issues.parquet is missing, damaged, or belongs to another run.
    """
    table = read_issues(run)
    codes = {str(name): at for at, name in enumerate(run.manifest.classes)}
    names = [str(name) for name in table["label_suggested"].to_pylist()]
    unknown = sorted({name for name in names if name not in codes})
    if unknown:
        raise DataError(
            f"{run.folder / ISSUES} suggests labels the manifest does not have: "
            f"{shortlist(unknown)}; audit the data again."
        )
    return Findings(
        row=table["row"].to_numpy(),
        suggested=np.array([codes[name] for name in names], dtype=np.int64),
        action=np.array(table["action"].to_pylist(), dtype=object),
        p_error=table["p_error"].to_numpy().astype(np.float64),
        p_suggested=table["p_suggested"].to_numpy().astype(np.float64),
        beside=beside_columns(table),
    )


def beside_columns(table: pa.Table) -> dict[str, NDArray[Any]]:
    """Give kind, duplicate_group and leaks_to of read issues; None and -1 for null."""
    places = {name: table[name].fill_null(-1).to_numpy() for name in _PLACES}
    return {_KIND: np.array(table[_KIND].to_pylist(), dtype=object), **places}
