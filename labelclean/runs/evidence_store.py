"""Evidence as columns of records.parquet: all that `labelclean report` needs to judge again."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from labelclean.calibration.fused import Fusion
from labelclean.calibration.planted_mixture import PlantedMixture
from labelclean.correction.decisions import Decision
from labelclean.data.manifest import Manifest
from labelclean.data.parquet import parquet_metadata, write_parquet
from labelclean.errors import DataError
from labelclean.evidence.duplicates import DuplicateGroups
from labelclean.evidence.value import Evidence
from labelclean.outputs.run_folder import RECORDS

_KEY = b"labelclean.evidence"
_POSTERIOR, _HELD_OUT, _FOLD, _DISTANCE = "posterior", "posterior_held_out", "fold", "distance"
_SUSPICIONS = "suspicions"
_PREFIX = "signal_"


def _columns(evidence: Evidence) -> tuple[dict[str, pa.Array], dict[bytes, bytes]]:
    """Give the columns (one line per audited row) and the metadata that hold evidence."""
    columns = {_POSTERIOR: _lists(evidence.probs)}
    for name, values in evidence.signals.items():
        columns[_PREFIX + name] = pa.array(np.asarray(values, dtype=np.float64))
    fusion = evidence.fusion
    if fusion is not None:
        columns[_FOLD] = pa.array(fusion.fold)
        if fusion.held_out is not None:
            columns[_HELD_OUT] = _lists(fusion.held_out)
        if fusion.distance is not None:
            columns[_DISTANCE] = pa.array(fusion.distance)
        if fusion.suspicions is not None:
            columns[_SUSPICIONS] = _lists(fusion.suspicions)
    notes = {
        "unreadable": {str(row): reason for row, reason in evidence.unreadable.items()},
        "quality": {name: dict(values) for name, values in evidence.quality.items()},
        "duplicates": {
            "row": evidence.duplicates.row.tolist(),
            "group": evidence.duplicates.group.tolist(),
            "exact": evidence.duplicates.exact.tolist(),
        },
        "faults": {str(row): words for row, words in evidence.faults.items()},
        "unknown": list(evidence.unknown),
        "people": {str(row): [made.what, made.label] for row, made in evidence.people.items()},
        "left_out": evidence.left_out.tolist(),
        "in_sample": evidence.in_sample,
        "fusion": None
        if fusion is None
        else {
            "share": fusion.share,
            "weights": dict(fusion.weights),
            "learnt": None
            if fusion.learnt is None
            else {name: np.asarray(one).tolist() for name, one in asdict(fusion.learnt).items()},
        },
    }
    return columns, {_KEY: json.dumps(notes, sort_keys=True).encode()}


def _lists(probs: NDArray[np.float32]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(
        pa.array(np.ascontiguousarray(probs).ravel()), probs.shape[1]
    )


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
        return Evidence(
            row=row,
            probs=_matrix(table, _POSTERIOR),
            fusion=_fusion(table, notes["fusion"]),
            signals={
                name.removeprefix(_PREFIX): table[name].to_numpy().astype(np.float64)
                for name in table.column_names
                if name.startswith(_PREFIX)
            },
            unreadable={int(at): reason for at, reason in notes["unreadable"].items()},
            in_sample=bool(notes.get("in_sample", False)),
            quality=notes["quality"],
            duplicates=_duplicates(notes["duplicates"]),
            faults={int(at): str(words) for at, words in notes["faults"].items()},
            unknown=tuple(map(str, notes["unknown"])),
            people={int(at): Decision(*made) for at, made in notes.get("people", {}).items()},
            left_out=np.array(notes.get("left_out", []), dtype=np.int64),
        )
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} holds no records of a labelclean audit ({error}); audit the data again."
        ) from error


def _duplicates(stored: Mapping[str, Any]) -> DuplicateGroups:
    row, group = (np.array(stored[name], dtype=np.int64) for name in ("row", "group"))
    exact = np.array(stored["exact"], dtype=bool)
    if not len(row) == len(group) == len(exact) or (len(row) and min(row.min(), group.min()) < 0):
        raise ValueError("groups of duplicates that cannot be")
    return DuplicateGroups(row, group, exact)


def _matrix(table: pa.Table, name: str) -> NDArray[np.float32]:
    values = table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    probs: NDArray[np.float32] = values.reshape(-1, table.schema.field(name).type.list_size)
    if len(probs) != len(table):
        raise ValueError(f"{name} is not one list for each row")
    return probs


def _fusion(table: pa.Table, stored: Mapping[str, Any] | None) -> Fusion | None:
    if stored is None:
        return None
    fold, held_out, distance = table[_FOLD].to_numpy(), None, None
    share = float(stored["share"])
    weights = {str(name): float(weight) for name, weight in stored["weights"].items()}
    if _HELD_OUT in table.column_names:
        held_out = _matrix(table, _HELD_OUT)
    if _DISTANCE in table.column_names:
        distance = table[_DISTANCE].to_numpy().astype(np.float32)
    sound = fold.dtype == np.int8 and (not len(fold) or fold.min() >= 0)
    sound &= 0 <= share <= 1
    if not sound or (distance is not None and not np.isfinite(distance).all()):
        raise ValueError("folds, shares or distances that cannot be")
    if held_out is not None and not ((held_out >= 0) & (held_out <= 1.001)).all():
        raise ValueError("held-out posteriors that are none")
    return Fusion(fold, share, weights, held_out, distance, *_learnt(table, stored["learnt"]))


def _learnt(
    table: pa.Table, stored: Mapping[str, Any] | None
) -> tuple[PlantedMixture | None, NDArray[np.float32] | None]:
    """Give what was learnt from planted rows, and what it is about."""
    if stored is None:
        return None, None
    names = ("slopes", "biases", "shares", "hidden")
    known = [np.array(stored[name], dtype=np.float64) for name in names]
    slopes, biases, shares, hidden = known
    suspicions = _matrix(table, _SUSPICIONS)
    kinds, signals = len(biases), suspicions.shape[1] + 1
    sound = slopes.shape == (kinds, signals) and shares.shape == hidden.shape == (kinds,)
    sound = sound and kinds > 0 and bool(np.isfinite(suspicions).all())
    sound = sound and all(bool(np.isfinite(part).all()) for part in known)
    for parts in (shares, hidden):
        sound = sound and bool((parts >= 0).all()) and parts.sum() < 1
    if not sound or not 0 <= float(stored["least"]) <= 1:
        raise ValueError("what was learnt from planted rows cannot be")
    return PlantedMixture(slopes, biases, shares, hidden, float(stored["least"])), suspicions
