"""A finished run, opened again: its facts, its table, and the very manifest it audited."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from labelclean.data.manifest import Manifest
from labelclean.data.opening import open_manifest
from labelclean.data.settings import DataSettings
from labelclean.data.tables import parse_origin
from labelclean.errors import DataError, shortlist
from labelclean.outputs.run_json import RUN_SCHEMA
from labelclean.runs.folder import RUN, RunFolder

ISSUES = "issues.parquet"
_NEEDED = {"input": dict, "classes": list, "columns": dict, "counts": dict, "recipe": dict}


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run folder and what it was about.

    Args:
        folder: The run folder.
        facts: What run.json says.
        manifest: What was audited, as it was.
    """

    folder: Path
    facts: Mapping[str, Any]
    manifest: Manifest


def read_facts(folder: Path, *, half_reported: bool = False) -> dict[str, Any]:
    """Read run.json.

    Args:
        folder: The run folder.
        half_reported: Take a run whose report was stopped, so that its files may be of two
            judgements.

    Raises:
        DataError: There is none, or it is something else.
    """
    path, run = folder / RUN, RunFolder(folder)
    if run.half_reported:
        if not half_reported:
            raise DataError(
                f"{path} is missing: `labelclean report` was stopped, and the files in {folder} "
                f"may be of two judgements. Run `labelclean report {folder}` again."
            )
        path = run.aside
    if not path.is_file():
        raise DataError(
            f"{path} is missing: {folder} holds no finished run of labelclean. Name the folder "
            "that `labelclean audit` wrote, or end the run with --resume."
        )
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is damaged ({error}); audit the data again.") from error
    missing = [
        key
        for key, kind in _NEEDED.items()
        if not isinstance(facts, dict) or not isinstance(facts.get(key), kind)
    ]
    if not missing and not _is_sound(facts):
        missing = ["digest of the input or names of columns and classes"]
    if missing:
        raise DataError(f"{path} is no run.json of labelclean: no {shortlist(missing)}.")
    if facts.get("schema_version") != RUN_SCHEMA:
        raise DataError(
            f"{path} has schema version {facts.get('schema_version')!r}, and this labelclean reads "
            f"{RUN_SCHEMA}; use the version that wrote it, or audit again."
        )
    return facts


def _is_sound(facts: Mapping[str, Any]) -> bool:
    image, label = (facts["columns"].get(name) for name in ("image", "label"))
    return (
        isinstance(facts["input"].get("digest"), str)
        and isinstance(facts["input"].get("path"), str | None)
        and isinstance(facts["input"].get("image_root"), str | None)
        and isinstance(image, str | None)
        and isinstance(label, str | None)
        and all(type(name) in (str, int) for name in facts["classes"])
        and all(isinstance(section, dict) for section in facts["recipe"].values())
    )


def open_run(
    folder: Path, manifest: Path | None = None, *, half_reported: bool = False
) -> OpenedRun:
    """Open a run and read the manifest it audited.

    Args:
        folder: The run folder.
        manifest: Where the manifest is now; None: where it was.
        half_reported: Take a run whose report was stopped.

    Raises:
        DataError: The folder holds no run, or the manifest is gone or was changed since.
    """
    facts = read_facts(folder, half_reported=half_reported)
    found = read_again(folder, facts, manifest or original_path(folder, facts))
    expected = facts["input"]["digest"]
    if found.digest != expected:
        raise DataError(
            f"{found.source} is not what was audited: its digest is {found.digest}, the run "
            f"{folder} is about {expected}. Restore it, name the audited one with --manifest, or "
            "audit again."
        )
    return OpenedRun(folder, facts, found)


def original_path(folder: Path, facts: Mapping[str, Any]) -> Path:
    """Give where the audited manifest was, as run.json says."""
    path = facts["input"].get("path")
    if not isinstance(path, str):
        raise DataError(
            f"{folder / RUN} does not say where the manifest is; name it with --manifest."
        )
    return folder / path


def read_again(folder: Path, facts: Mapping[str, Any], path: Path) -> Manifest:
    """Read a manifest as a run read its own: the same columns, root and limit."""
    if not path.exists():
        raise DataError(f"{path} does not exist; name the audited manifest with --manifest.")
    root = facts["input"].get("image_root")
    try:
        settings = dict(facts["recipe"]["data"])
        settings |= {
            "label_col": facts["columns"]["label"],
            "image_col": facts["columns"]["image"],
            "image_root": None if root is None else str(folder / root),
        }
        data = DataSettings(**settings)
    except (TypeError, KeyError) as error:
        raise DataError(f"{folder / RUN} holds no settings of labelclean ({error}).") from error
    # The pictures were looked at when the data was audited; they may have moved since.
    return open_manifest(path, data, need_images=False)


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
        table = pq.read_table(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or ["unknown reason"])[0]
        raise DataError(f"{path} is no complete Parquet file ({reason}); audit again.") from error
    digest = parse_origin(path, table.schema.metadata or {}).get("input_digest")
    if digest != facts["input"]["digest"]:
        raise DataError(
            f"{path} does not belong to this run: it is about the input {digest}, run.json about "
            f"{facts['input']['digest']}. Put the run's own file back, or audit again."
        )
    return table
