"""Testimony as records.parquet: all that `labelclean report` needs to judge again."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from labelclean.calibration.transition import Transition
from labelclean.correction.decisions import Decision
from labelclean.correction.judging import Testimony
from labelclean.errors import DataError

KEY = b"labelclean.testimony"
OPINION = "opinion"
PREFIX = "signal_"


def testimony_columns(seen: Testimony) -> tuple[dict[str, pa.Array], dict[bytes, bytes]]:
    """Give the columns (one line per audited row) and the metadata that hold a testimony."""
    flat = pa.array(np.ascontiguousarray(seen.probs).ravel())
    columns = {OPINION: pa.FixedSizeListArray.from_arrays(flat, seen.probs.shape[1])}
    for name, values in seen.signals.items():
        columns[PREFIX + name] = pa.array(np.asarray(values, dtype=np.float64))
    transition = seen.transition
    notes = {
        "unreadable": {str(row): reason for row, reason in seen.unreadable.items()},
        "quality": {name: dict(values) for name, values in seen.quality.items()},
        "conflicts": seen.conflicts.tolist(),
        "people": {str(row): [made.what, made.label] for row, made in seen.people.items()},
        "left_out": seen.left_out.tolist(),
        "in_sample": seen.in_sample,
        "transition": None
        if transition is None
        else [transition.true.tolist(), transition.given.tolist(), transition.count.tolist()],
    }
    return columns, {KEY: json.dumps(notes, sort_keys=True).encode()}


def read_testimony(path: Path) -> Testimony:
    """Read what `testimony_columns` gave.

    Raises:
        DataError: The file is missing, damaged or something else.
    """
    try:
        table = pq.read_table(path)
        notes = json.loads((table.schema.metadata or {})[KEY])
        row: NDArray[np.int64] = table["row"].to_numpy()
        if row.dtype != np.int64:
            raise TypeError(f"rows of type {row.dtype}")
        probs = table[OPINION].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        size = table.schema.field(OPINION).type.list_size
        return Testimony(
            row=row,
            probs=probs.reshape(len(row), size),
            transition=_transition(notes["transition"], size),
            signals={
                name.removeprefix(PREFIX): table[name].to_numpy().astype(np.float64)
                for name in table.column_names
                if name.startswith(PREFIX)
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
