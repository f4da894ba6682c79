"""Folders that Hugging Face's `save_to_disk` wrote; the library itself is not needed."""

import hashlib
import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from labelclean.data.arrow_types import plain_table
from labelclean.data.budget import Budget
from labelclean.data.places import Place
from labelclean.data.tables import RawTable
from labelclean.errors import DataError, shortlist

STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"


def is_saved_dataset(folder: Place) -> bool:
    """Tell whether a folder holds a saved Dataset, or several by split."""
    return any((folder / name).is_file() for name in (STATE, SPLITS))


def read_saved_dataset(folder: Place, budget: Budget) -> RawTable:
    """Read a saved Dataset; class numbers become the names of the classes.

    Raises:
        DataError: It holds several splits, or a file is missing or damaged; the message names it.
    """
    if (folder / SPLITS).is_file():
        splits = _json(folder / SPLITS).get("splits")
        names = splits if isinstance(splits, list) else []
        raise DataError(
            f"{folder} holds several splits ({shortlist(names)}); audit one of them, for example "
            f"{folder / str(next(iter(names), 'train'))}."
        )
    files = _json(folder / STATE).get("_data_files")
    listed = files if isinstance(files, list) else []
    names = [entry.get("filename") for entry in listed if isinstance(entry, dict)]
    plain = [name for name in names if isinstance(name, str) and name and _is_plain(name)]
    if not plain or len(plain) != len(names):
        raise DataError(f"{folder / STATE} names no data files of its own folder; save it again.")
    digest, tables = hashlib.sha256(), []
    for name in plain:
        data = _bytes(folder / name)
        digest.update(f"{name}\0{hashlib.sha256(data).hexdigest()}\n".encode())
        tables.append(_stream(folder / name, data))
        budget.require_rows(folder, sum(table.num_rows for table in tables))
    budget.require_columns(folder, tables[0].num_columns)
    features = _json(folder / INFO).get("features")
    kinds = features if isinstance(features, dict) else {}
    table = plain_table(folder, pa.concat_tables(tables).replace_schema_metadata(None))
    table = _named(folder, table, kinds)
    return RawTable(table, True, folder, digest.hexdigest(), hints=_hints(kinds))


def _is_plain(name: str) -> bool:
    return not any(mark in name for mark in "/\\:\0") and not name.startswith(".")


def _bytes(path: Place) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror or error}): the saved data set is not "
            "complete. Copy or save it again."
        ) from error


def _json(path: Place) -> dict[str, object]:
    try:
        found = json.loads(_bytes(path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON ({error}); save the data set again.") from error
    return found if isinstance(found, dict) else {}


def _stream(path: Place, data: bytes) -> pa.Table:
    try:
        with pa.ipc.open_stream(pa.BufferReader(data)) as stream:
            return stream.read_all()
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or ["unknown reason"])[0]
        raise DataError(
            f"the shard {path} is no complete Arrow file ({reason}); copy or save it again."
        ) from error


def _kind(feature: object) -> str:
    return str(feature.get("_type", "")) if isinstance(feature, dict) else ""


def _named(folder: Place, table: pa.Table, kinds: Mapping[str, object]) -> pa.Table:
    """Replace class numbers by the names that the data set gives them."""
    for name, feature in kinds.items():
        if name not in table.column_names or _kind(feature) != "ClassLabel":
            continue
        known = feature.get("names") if isinstance(feature, dict) else None
        if isinstance(known, list) and all(isinstance(one, str) for one in known):
            codes = table.column(name).to_pylist()
            texts = class_names(f"{folder}, column {name!r}", codes, known)
            position = table.column_names.index(name)
            table = table.set_column(position, name, pa.array(texts, pa.string()))
    return table


def class_names(where: str, codes: Sequence[int | None], names: Sequence[str]) -> list[str | None]:
    """Give the names of class numbers; nothing for none and for -1.

    Raises:
        DataError: A number has no name.
    """
    beyond = [row for row, code in enumerate(codes) if code is not None and code >= len(names)]
    if beyond:
        raise DataError(
            f"{where}: rows {shortlist(beyond)} have class numbers beyond the {len(names)} names; "
            "correct them."
        )
    return [None if code is None or code < 0 else names[code] for code in codes]


def _hints(kinds: Mapping[str, object]) -> dict[str, str]:
    """Say which column is the image and which the label, where there is one of that type."""
    found = {}
    for role, kind in (("image", "Image"), ("label", "ClassLabel")):
        names = [name for name, feature in kinds.items() if _kind(feature) == kind]
        if len(names) == 1:
            found[role] = names[0]
    return found
