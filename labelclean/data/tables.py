"""Every form a manifest comes in, read into one raw table; meaning is given in `read`."""

import hashlib
import io
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from labelclean.data.arrow_types import plain_table
from labelclean.data.budget import DEFAULT_BUDGET, MOST_NESTED, MOST_UNPACKED, Budget
from labelclean.data.claims import ArrayHeader, npz_headers, parquet_bytes
from labelclean.data.places import Place, join
from labelclean.data.textfiles import read_text_table
from labelclean.errors import DataError, shortlist

METADATA_KEY = b"labelclean"
"""Key of our own entry in a Parquet file's schema metadata."""

_T = TypeVar("_T")
METADATA_FILES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")


@dataclass(frozen=True, slots=True)
class RawTable:
    """A manifest as read, before any column has a meaning.

    Args:
        table: The columns, in order.
        typed: False for CSV and TSV, where types were inferred from text.
        root: Folder that relative paths start from; None where no files are involved.
        digest: SHA-256 of what was read.
        origin: What labelclean wrote into its own Parquet file; empty for others' tables.
        arrays: Images or features of an .npz; None otherwise.
        hints: Which column is the `image` and which the `label`, where the data itself says so.
    """

    table: pa.Table
    typed: bool
    root: Place | None
    digest: str
    origin: Mapping[str, object] = field(default_factory=dict)
    arrays: np.ndarray | None = None
    hints: Mapping[str, str] = field(default_factory=dict)


def read_table_file(
    path: Place, need_labels: bool = True, budget: Budget = DEFAULT_BUDGET
) -> RawTable:
    """Read a manifest file by its extension.

    Args:
        path: The file.
        need_labels: Whether an .npz without `y` is refused.
        budget: What it may claim.

    Raises:
        DataError: The extension is unknown, or the content is not what the extension says.
    """
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise DataError(
            f"{path}: no reader for {suffix or 'a file without extension'!r}; "
            f"use one of {', '.join(_READERS)} or a folder of images."
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    labelled = need_labels or suffix != ".npz"
    if labelled:
        raw: RawTable = _READERS[suffix](path, data, budget)
    else:
        raw = _read_npz(path, data, budget, ("X",))
    if raw.table.num_rows == 0:
        raise DataError(f"{path} has no rows; nothing to read.")
    return raw


def _read_csv(path: Place, data: bytes, budget: Budget) -> RawTable:
    return RawTable(read_text_table(path, data, ",", budget), False, path.parent, _sha256(data))


def _read_tsv(path: Place, data: bytes, budget: Budget) -> RawTable:
    return RawTable(read_text_table(path, data, "\t", budget), False, path.parent, _sha256(data))


def _read_jsonl(path: Place, data: bytes, budget: Budget) -> RawTable:
    budget.require_rows(path, data.count(b"\n"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8.") from error
    # Only \n ends a record: other line separators are legal inside a JSON string.
    records = [
        (number, _parse_json_line(path, number, line, budget))
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip()
    ]
    names = list(dict.fromkeys(name for _, record in records for name in record))
    budget.require_columns(path, len(names))
    columns = [
        json_column(path, name, [record.get(name) for _, record in records]) for name in names
    ]
    return RawTable(pa.table(columns, names=names), True, path.parent, _sha256(data))


def _parse_json_line(path: Place, number: int, line: str, budget: Budget) -> dict[str, object]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}, line {number} is not valid JSON: {error}.") from error
    if not isinstance(record, dict):
        raise DataError(f"{path}, line {number} is not a JSON object; write one object per line.")
    if line.count("[") + line.count("{") > MOST_NESTED:
        budget.require_nested(path, _depth(record))
    return record


def _depth(value: object) -> int:
    """Count the levels of a JSON value."""
    level, depth = [value], 0
    while level:
        depth += 1
        inside = [one.values() if isinstance(one, dict) else one for one in level]
        level = [x for part in inside for x in part if isinstance(x, list | dict)]  # type: ignore[attr-defined]
    return depth


def json_column(path: Place, name: str, values: list[object]) -> pa.Array:
    """Give values of JSON as a column of one type."""
    try:
        if all(type(value) is int for value in values if value is not None):
            return _integers(values)
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
        kinds = sorted({type(value).__name__ for value in values if value is not None})
        raise DataError(
            f"{path}: column {name!r} mixes values that do not fit one type ({', '.join(kinds)}); "
            f"make them all text or all numbers. ({str(error).splitlines()[0]})"
        ) from error


def _integers(values: list[object]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, OverflowError):
        return pa.array(values, pa.uint64())


def _read_parquet(path: Place, data: bytes, budget: Budget) -> RawTable:
    claimed = _open_parquet(path, lambda: pq.read_metadata(pa.BufferReader(data)))
    budget.require_rows(path, claimed.num_rows)
    budget.require_columns(path, claimed.num_columns)
    most = MOST_UNPACKED * budget.times
    unpacked = _open_parquet(path, lambda: parquet_bytes(data, claimed, most))
    budget.require_unpacked(path, unpacked, len(data))
    schema = _open_parquet(path, lambda: pq.read_schema(pa.BufferReader(data)))
    repeated = sorted(name for name, times in Counter(schema.names).items() if times > 1)
    if repeated:
        raise DataError(
            f"{path} has columns with the same name: {shortlist(repeated)}; rename them."
        )
    table = plain_table(path, _open_parquet(path, lambda: pq.read_table(pa.BufferReader(data))))
    origin = parse_origin(path, table.schema.metadata or {})
    root = join(path.parent, str(origin.get("image_root", ".")))
    return RawTable(table, True, root, _sha256(data), origin)


def _open_parquet(path: Place, work: Callable[[], _T]) -> _T:
    try:
        return work()
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or ["unknown reason"])[0]
        raise DataError(
            f"{path} is not a complete Parquet file ({reason}); copy or write it again."
        ) from error


def parse_origin(path: Place, metadata: Mapping[bytes, bytes]) -> dict[str, object]:
    """Read our own entry of a Parquet file's metadata; empty for others' files."""
    if METADATA_KEY not in metadata:
        return {}
    try:
        origin = json.loads(metadata[METADATA_KEY])
    except ValueError as error:
        raise DataError(f"{path}: its labelclean metadata is damaged ({error}).") from error
    root = origin.get("image_root", ".") if isinstance(origin, dict) else None
    if not isinstance(root, str) or Path(root).is_absolute():
        raise DataError(
            f"{path}: its labelclean metadata names no relative image root ({root!r}); "
            "write the file again or pass --image-root."
        )
    return dict(origin)


def _read_npz(
    path: Place, data: bytes, budget: Budget, needed: Sequence[str] = ("X", "y")
) -> RawTable:
    claimed = _open_npz(path, lambda: npz_headers(data))
    missing = [name for name in needed if name not in claimed]
    if missing:
        raise DataError(
            f"{path} has no array {' or '.join(missing)}; it holds {shortlist(claimed)}. "
            "Save it with numpy.savez(file, X=images_or_features, y=labels)."
        )
    _require_samples(path, claimed["X"])
    rows = claimed["X"].shape[0]
    others = {name: head for name, head in claimed.items() if name != "X"}
    wrong = [name for name, head in others.items() if head.shape != (rows,)]
    if wrong:
        raise DataError(
            f"{path}: {wrong[0]} has shape {others[wrong[0]].shape}; "
            f"X has {rows} rows, so it must be ({rows},)."
        )
    budget.require_rows(path, rows)
    budget.require_columns(path, len(others))
    budget.require_unpacked(path, sum(head.nbytes for head in claimed.values()), len(data))
    arrays = _open_npz(path, lambda: _load_npz(data))
    samples = _check_samples(path, arrays.pop("X"))
    # A table without columns would have no rows.
    arrays = arrays or {"row": np.arange(len(samples))}
    try:
        columns = [pa.array(array.tolist()) for array in arrays.values()]
    except (pa.ArrowInvalid, OverflowError) as error:
        raise DataError(f"{path}: an array cannot be made a column ({error}).") from error
    return RawTable(
        pa.table(columns, names=list(arrays)), True, None, _sha256(data), arrays=samples
    )


# A header may claim more than any memory holds, and a broken archive may fail anywhere.
_UNREADABLE = (
    ValueError, OSError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error, AttributeError,
    TypeError, KeyError, SyntaxError, NotImplementedError, RuntimeError,
)  # fmt: skip


def _load_npz(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _open_npz(path: Place, work: Callable[[], _T]) -> _T:
    try:
        return work()
    except _UNREADABLE as error:
        raise DataError(
            f"{path} is not a readable .npz ({error}); save plain arrays with numpy.savez, "
            "without Python objects."
        ) from error


def _require_samples(path: Place, claimed: ArrayHeader) -> None:
    shape, kind = claimed.shape, claimed.dtype
    images = len(shape) in (3, 4) and kind == np.uint8
    if images and len(shape) == 4 and shape[3] not in (1, 3, 4):
        images = False
    features = len(shape) == 2 and kind.kind in "fiu" and shape[1] > 0
    if not images and not features:
        raise DataError(
            f"{path}: X has shape {shape} and type {kind}; it must be images "
            "(N, H, W) or (N, H, W, C) of type uint8 with C 1, 3 or 4, or features (N, D), D at "
            "least 1."
        )


def _check_samples(path: Place, samples: np.ndarray) -> np.ndarray:
    if samples.ndim > 2:
        return samples
    samples = samples.astype(np.float64 if samples.dtype.itemsize > 4 else np.float32)
    bad = np.flatnonzero(~np.isfinite(samples).all(axis=1))
    if len(bad):
        raise DataError(
            f"{path}: X is not finite in {len(bad)} rows (rows {shortlist(bad)}); "
            "repair or remove them."
        )
    return samples


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


_READERS = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".parquet": _read_parquet,
    ".jsonl": _read_jsonl,
    ".npz": _read_npz,
}
TABLE_SUFFIXES = tuple(_READERS)
