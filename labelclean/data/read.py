"""Read any manifest into a Manifest, or say in one message what is wrong and what to do."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelclean.data.any_folder import read_any_folder
from labelclean.data.budget import Budget
from labelclean.data.cells import cell_texts
from labelclean.data.labels import encode_labels, refuse_one_class
from labelclean.data.manifest import Label, Manifest
from labelclean.data.many_files import expand, is_pattern, pattern_root, read_shards
from labelclean.data.marks import OWN_COLUMNS, unmarked
from labelclean.data.part import EvenPart, even_part
from labelclean.data.places import Place, RemotePath, as_place, same_store
from labelclean.data.remote import outside_rows
from labelclean.data.roles import column_texts, row_weights, sample_ids, verified_rows
from labelclean.data.tables import TABLE_SUFFIXES, RawTable, read_table_file
from labelclean.data.tar_shards import ENDING as TAR
from labelclean.data.tar_shards import in_tar
from labelclean.errors import DataError, shortlist

IMAGE_COLUMNS = ("image", "image_path", "path", "file_name", "filename", "file")
LABEL_COLUMNS = ("label", "labels", "class", "target", "y")

_PROBED = 1000


def read_manifest(  # noqa: PLR0913 (how a table is read is one matter)
    path: str | os.PathLike[str] | Place,
    *,
    image_col: str | None = None,
    label_col: str | None = None,
    image_root: str | os.PathLike[str] | Place | None = None,
    allow_outside_root: bool = False,
    limit: int | None = None,
    need_labels: bool = True,
    need_images: bool = True,
    budget: float = 1.0,
) -> Manifest:
    """Read a table or folder of images and labels; nothing is decoded yet.

    Args:
        path: .csv, .tsv, .parquet, .jsonl, .npz, .tar, or a folder (one sub-folder per class,
            Hugging Face's imagefolder or saved data set, or of shards); a path, a URL of a store,
            or a pattern of shards like `shards-{000..099}.tar`.
        image_col: Column with the image path or bytes; None: the first known name present.
        label_col: Column with the label; None: the first known name present.
        image_root: Folder relative paths start from; None: the manifest's own folder.
        allow_outside_root: Accept paths that leave that folder.
        limit: Keep only so many rows, the first or an even part (`even_part`); None: all.
        need_labels: False reads pictures only; labels are then read only from a named `label_col`.
        need_images: False accepts a table without an image column, and does not look at the paths
            of one that has it: features or probabilities come from elsewhere.
        budget: Multiple of what a table may claim: rows, columns, nesting, bytes unpacked.

    Returns:
        The manifest; row i of the input is sample i.

    Raises:
        DataError: The input cannot be used; the message names what, where and what to do.
    """
    source = _place_of(path)
    raw = _read_raw(source, image_col, allow_outside_root, need_labels, Budget(budget))
    raw = _rooted(source, raw, image_root, need_images)
    _refuse_own_columns(source, raw)
    image_name = _find_image(source, raw, image_col, need_images)
    label_name = _find_label(source, raw, label_col, need_labels)
    raw, part = _limited(raw, label_name, limit)
    table = raw.table if raw.typed else _as_text(raw.table, label_name)
    label, classes = _labels(source, table, label_name)
    paths, root = _paths(raw, table, image_name)
    if need_images and _are_files(table, image_name):
        _check_paths(source, str(image_name), paths, root or Path(), allow_outside_root)
    count = table.num_rows
    return Manifest(
        label=label,
        classes=classes,
        sample_id=sample_ids(source, table),
        path=paths,
        split=column_texts(table, "split"),
        verified=verified_rows(source, table)
        if "verified" in table.column_names
        else np.zeros(count, dtype=bool),
        group=column_texts(table, "group"),
        sample_weight=row_weights(source, table) if "sample_weight" in table.column_names else None,
        table=table,
        image_col=image_name,
        label_col=label_name,
        image_root=root,
        allow_outside_root=allow_outside_root,
        arrays=raw.arrays,
        digest=raw.digest,
        source=source,
        origin=raw.origin,
        part=part,
    )


def _place_of(path: "str | os.PathLike[str] | Place") -> Place:
    return path if isinstance(path, RemotePath) else as_place(os.fspath(path))


def _read_raw(
    source: Place, image_col: str | None, allow_outside: bool, need_labels: bool, budget: Budget
) -> RawTable:
    if is_pattern(source) and not is_there(source):
        return read_shards(pattern_root(source), expand(source), need_labels, budget)
    table = source.suffix.lower() in TABLE_SUFFIXES
    if isinstance(source, RemotePath) and table:
        folder = False  # without asking: not every store knows folders
    elif not source.exists():
        raise DataError(f"{source} does not exist; check the name and the current folder.")
    else:
        folder = source.is_dir()
    if folder:
        return read_any_folder(source, allow_outside, need_labels, budget)
    if source.suffix.lower() == TAR:
        return read_shards(source.parent, [source.name], need_labels, budget)
    known = IMAGE_COLUMNS if image_col is None else (image_col,)
    return unmarked(source, read_table_file(source, need_labels, budget), known)


def _limited(
    raw: RawTable, label_name: str | None, limit: int | None
) -> tuple[RawTable, EvenPart | None]:
    """Keep so many rows: an even part where the rows are sorted by class, else the first."""
    if limit is None:
        return raw, None
    part = None if label_name is None else even_part(raw.table.column(label_name), limit)
    return _some_rows(raw, slice(limit) if part is None else part.rows), part


def _some_rows(raw: RawTable, rows: slice | np.ndarray) -> RawTable:
    arrays = None if raw.arrays is None else raw.arrays[rows]
    if isinstance(rows, slice):
        return replace(raw, table=raw.table.slice(0, rows.stop), arrays=arrays)
    return replace(raw, table=raw.table.take(rows), arrays=arrays)


def _rooted(
    source: Place, raw: RawTable, asked: str | os.PathLike[str] | Place | None, needed: bool
) -> RawTable:
    """Start paths where a person says; no store is opened because only a file names it."""
    if asked is not None:
        root = _place_of(asked)
        if isinstance(root, Path) and not root.is_dir():
            raise DataError(f"--image-root {root} is not a folder.")
        return replace(raw, root=root)
    named = raw.root
    if not needed or not isinstance(named, RemotePath):
        return raw
    if isinstance(source, RemotePath) and same_store(named, source):
        return raw
    raise DataError(
        f"{source} says that its pictures are in {named}. No store is opened because a file "
        f"names it: if you trust the file, pass --image-root {named}."
    )


def _refuse_own_columns(source: Place, raw: RawTable) -> None:
    clash = [name for name in OWN_COLUMNS if name in raw.table.column_names]
    if clash and not raw.origin:
        raise DataError(
            f"{source} has {shortlist(map(repr, clash))}, names of labelclean's own columns; "
            "rename them in your table."
        )


def _find_image(source: Place, raw: RawTable, asked: str | None, needed: bool) -> str | None:
    present = set(IMAGE_COLUMNS) & set(raw.table.column_names)
    if raw.arrays is not None or (asked is None and not needed and not present):
        return None
    known = _known(IMAGE_COLUMNS, raw, "image")
    return _find(source, raw.table, asked, known, "image", "--image-col")


def _find_label(source: Place, raw: RawTable, asked: str | None, need_labels: bool) -> str | None:
    if asked is None and not need_labels:
        return None
    known = _known(LABEL_COLUMNS, raw, "label")
    return _find(source, raw.table, asked, known, "label", "--label-col")


def _known(names: Sequence[str], raw: RawTable, role: str) -> Sequence[str]:
    return (*names, raw.hints[role]) if role in raw.hints else names


def _find(
    source: Place, table: pa.Table, asked: str | None, known: Sequence[str], role: str, flag: str
) -> str:
    present = table.column_names
    for name in known if asked is None else (asked,):
        if name in present:
            return name
    wanted = repr(asked) if asked is not None else f"{role} column ({', '.join(known)})"
    hint = ""
    if len(present) == 1 and any(mark in present[0] for mark in ";\t|"):
        hint = " The header looks as if another separator than the comma was used; save it as CSV."
    raise DataError(
        f"{source} has no {'column ' if asked is not None else ''}{wanted}; it has "
        f"{shortlist(map(repr, present), 20)}. Name the {role} column with {flag}.{hint}"
    )


def _as_text(table: pa.Table, name: str | None) -> pa.Table:
    # In a text file a label is text unless all of them are integers; "1.0" must stay "1.0".
    if name is None or not pa.types.is_floating(table.schema.field(name).type):
        return table
    texts = pa.array(cell_texts(table.column(name)), pa.string())
    return table.set_column(table.column_names.index(name), name, texts)


def _labels(
    source: Place, table: pa.Table, name: str | None
) -> tuple[np.ndarray, tuple[Label, ...]]:
    if name is None:
        return np.full(table.num_rows, -1, dtype=np.int64), ()
    where = f"{source}, column {name!r}"
    label, classes = encode_labels(where, table.column(name))
    refuse_one_class(where, classes)
    return label, classes


def _are_files(table: pa.Table, name: str | None) -> bool:
    if name is None:
        return False
    kind = table.schema.field(name).type
    embedded = pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0
    return not (embedded or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _paths(raw: RawTable, table: pa.Table, name: str | None) -> tuple[np.ndarray, Place | None]:
    if name is None:
        return _row_names(table.num_rows), None
    if _are_files(table, name):
        return np.array(cell_texts(table.column(name)), dtype=object), raw.root
    kind = table.schema.field(name).type
    if pa.types.is_struct(kind):
        return _embedded_names(table.column(name), kind), raw.root
    return _row_names(table.num_rows), raw.root


def _check_paths(
    source: Place, name: str, paths: np.ndarray, root: Place, allow_outside: bool
) -> None:
    where = f"{source}, column {name!r}"
    blank = [row for row, text in enumerate(paths) if not text.strip()]
    if blank:
        raise DataError(
            f"{where}: {len(blank)} image paths are blank (rows {shortlist(blank)}, counted from "
            "0); fill them in or remove the rows."
        )
    outside = [] if allow_outside else outside_rows(root, list(paths))
    if outside:
        shown = shortlist(f"row {row}: {paths[row]!r}" for row in outside)
        raise DataError(
            f"{where}: {len(outside)} paths leave the folder {root} ({shown}). Pass --image-root "
            "to name another folder, or --allow-outside-root to accept them."
        )
    if isinstance(root, RemotePath) or any(in_tar(text) for text in paths):
        return  # every look costs a request; what is not there is told of row by row
    step = max(1, len(paths) // _PROBED)
    probed = paths[::step]
    if not any(is_there(root / text) for text in probed) and not any(
        is_there(root / text) for text in paths
    ):
        raise DataError(
            f"{where}: none of the {len(paths)} paths exists below {root} (the first is "
            f"{paths[0]!r}). Name the folder they start from with --image-root, or the image "
            "column with --image-col."
        )


def is_there(path: Place) -> bool:
    """Tell whether something is at a place; a name that cannot be is a name of nothing."""
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or with a NUL
        return False


def _row_names(count: int) -> np.ndarray:
    return np.array([f"row-{row}" for row in range(count)], dtype=object)


def _embedded_names(column: pa.ChunkedArray, kind: pa.StructType) -> np.ndarray:
    names = _row_names(len(column))
    if kind.get_field_index("path") < 0:
        return names
    given = pc.struct_field(column, "path").to_pylist()
    return np.array(
        [str(path) if path else name for path, name in zip(given, names, strict=True)], dtype=object
    )
