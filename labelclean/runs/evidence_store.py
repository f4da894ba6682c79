"""Evidence as columns of records.parquet: all that `labelclean report` needs to judge again."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from labelclean.calibration.transition import Transition
from labelclean.correction.decisions import Decision
from labelclean.data.manifest import Manifest
from labelclean.data.parquet import parquet_metadata, write_parquet
from labelclean.errors import DataError
from labelclean.evidence.value import Evidence
from labelclean.outputs.run_folder import RECORDS

_KEY = b"labelclean.testimony"
_POSTERIOR = "opinion"
_PREFIX = "signal_"


def _columns(evidence: Evidence) -> tuple[dict[str, pa.Array], dict[bytes, bytes]]:
    """Give the columns (one line per audited row) and the metadata that hold evidence."""
    flat = pa.array(np.ascontiguousarray(evidence.probs).ravel())
    columns = {_POSTERIOR: pa.FixedSizeListArray.from_arrays(flat, evidence.probs.shape[1])}
    for name, values in evidence.signals.items():
        columns[_PREFIX + name] = pa.array(np.asarray(values, dtype=np.float64))
    transition = evidence.transition
    notes = {
        "unreadable": {str(row): reason for row, reason in evidence.unreadable.items()},
        "quality": {name: dict(values) for name, values in evidence.quality.items()},
        "conflicts": evidence.conflicts.tolist(),
        "people": {str(row): [made.what, made.label] for row, made in evidence.people.items()},
        "left_out": evidence.left_out.tolist(),
        "in_sample": evidence.in_sample,
        "transition": None
        if transition is None
        else [transition.true.tolist(), transition.given.tolist(), transition.count.tolist()],
    }
    return columns, {_KEY: json.dumps(notes, sort_keys=True).encode()}


def write_records(folder: Path, records: pa.Table, evidence: Evidence, manifest: Manifest) -> None:
    """Write records.parquet of a run.

    Args:
        folder: The run folder.
        records: One line per audited row: what training recorded.
        evidence: What the judge needs, stored beside it.
        manifest: What was audited.
    """
    columns, metadata = _columns(evidence)
    for name, column in columns.items():
        records = records.append_column(name, column)
    path = folder / RECORDS
    own = parquet_metadata(manifest, path, input_digest=manifest.digest)
    write_parquet(path, records, {**own, **metadata})


def read_evidence(path: Path) -> Evidence:
    """Read what `write_records` wrote.

    Raises:
        DataError: The file is missing, damaged or something else.
    """
    try:
        table = pq.read_table(path)
        notes = json.loads((table.schema.metadata or {})[_KEY])
        row: NDArray[np.int64] = table["row"].to_numpy()
        if row.dtype != np.int64:
            raise TypeError(f"rows of type {row.dtype}")
        probs = table[_POSTERIOR].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        size = table.schema.field(_POSTERIOR).type.list_size
        return Evidence(
            row=row,
            probs=probs.reshape(len(row), size),
            transition=_transition(notes["transition"], size),
            signals={
                name.removeprefix(_PREFIX): table[name].to_numpy().astype(np.float64)
                for name in table.column_names
                if name.startswith(_PREFIX)
            },
            unreadable={int(at): reason for at, reason in notes["unreadable"].items()},
            in_sample=bool(notes.get("in_sample", False)),
            quality=notes["quality"],
            conflicts=np.array(notes["conflicts"], dtype=np.int64),
            people={int(at): Decision(*made) for at, made in notes.get("people", {}).items()},
            left_out=np.array(notes.get("left_out", []), dtype=np.int64),
        )
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} holds no records of a labelclean audit ({error}); audit the data again."
        ) from error


def _transition(stored: list[list[float]] | None, size: int) -> Transition | None:
    if stored is None:
        return None
    true, given = (np.array(part, dtype=np.int64) for part in stored[:2])
    return Transition.from_counts(size, (true, given), np.array(stored[2]))
