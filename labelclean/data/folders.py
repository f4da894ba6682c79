"""Folders of images: one sub-folder per class, or Hugging Face's imagefolder with metadata."""

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from labelclean.data.budget import DEFAULT_BUDGET, Budget
from labelclean.data.parquet import relative_path
from labelclean.data.places import Place
from labelclean.data.tables import METADATA_FILES, RawTable, read_table_file
from labelclean.errors import DataError, shortlist

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"})
LINKED = "linked"
"""Entry of our own metadata in a folder of links: the root of the pictures they lead to."""
_log = logging.getLogger(__name__)


def read_folder(
    folder: Path,
    *,
    allow_outside_root: bool,
    need_labels: bool,
    budget: Budget = DEFAULT_BUDGET,
) -> RawTable:
    """Read a folder of images.

    With a metadata file it is Hugging Face's imagefolder; otherwise the sub-folders of the first
    level are the classes, in lexicographic order, and pictures below them belong to that class.

    Raises:
        DataError: No images, images outside any class folder, several metadata files, or a linked
            folder that leads outside.
    """
    present = [folder / name for name in METADATA_FILES if (folder / name).is_file()]
    if len(present) > 1:
        names = " and ".join(path.name for path in present)
        raise DataError(f"{folder} has {names}; keep one metadata file.")
    if present:
        raw = read_table_file(present[0], budget=budget)
        if "file_name" not in raw.table.column_names:
            raise DataError(
                f"{present[0]} has no column 'file_name' (it has "
                f"{shortlist(map(repr, raw.table.column_names))}); name the image column so."
            )
        raw = replace(raw, root=folder)
        return raw if allow_outside_root else _through_links(raw, folder)
    return folder_table(folder, _images(folder, folder, allow_outside_root, ()), need_labels)


def folder_table(folder: Place, names: Iterable[str], need_labels: bool) -> RawTable:
    """Give pictures as a table: the sub-folders of the first level are the classes.

    Args:
        folder: Where they are.
        names: Paths of the pictures as seen from there.
        need_labels: Whether pictures outside any sub-folder are refused.

    Raises:
        DataError: There are none, or some have no class.
    """
    paths = sorted(names)
    if not paths:
        raise DataError(
            f"{folder} contains no images ({', '.join(sorted(IMAGE_SUFFIXES))}); "
            "name a folder with one sub-folder per class, or a table."
        )
    digest = hashlib.sha256("\0".join(paths).encode("utf-8", "surrogateescape")).hexdigest()
    if not need_labels:
        return RawTable(pa.table({"image": paths}), True, folder, digest)
    loose = [path for path in paths if "/" not in path]
    if loose:
        raise DataError(
            f"{folder}: {len(loose)} images lie outside any class folder ({shortlist(loose)}); "
            "move each into the sub-folder of its class, or add a metadata.csv."
        )
    # By class first: "a b/x" sorts before "a/x" as plain text, which would interleave classes.
    paths.sort(key=lambda path: tuple(path.split("/")))
    labels = [path.split("/", 1)[0] for path in paths]
    return RawTable(pa.table({"image": paths, "label": labels}), True, folder, digest)


def _through_links(raw: RawTable, folder: Path) -> RawTable:
    """Take the pictures that a folder of links of ours leads to, below the root it names."""
    linked = raw.origin.get(LINKED)
    if not isinstance(linked, str) or Path(linked).is_absolute():
        return raw
    root, names = folder / linked, raw.table.column("file_name").to_pylist()
    places = [folder / str(name) for name in names]
    led = [place.parent / place.readlink() if place.is_symlink() else place for place in places]
    moved = pa.array([relative_path(place, root) for place in led], pa.string())
    position = raw.table.column_names.index("file_name")
    return replace(raw, table=raw.table.set_column(position, "file_name", moved), root=root)


def _images(
    folder: Path, root: Path, allow_outside: bool, trail: tuple[Path, ...]
) -> Iterator[str]:
    real = folder.resolve()
    if real in trail:
        raise DataError(f"{folder} is a link to a folder that contains it; remove the link.")
    if not allow_outside and not real.is_relative_to(root.resolve()):
        raise DataError(
            f"{folder} is a link that leads out of {root}; pass --allow-outside-root to follow it."
        )
    skipped = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _images(Path(entry.path), root, allow_outside, (*trail, real))
            elif Path(entry.name).suffix.lower() in IMAGE_SUFFIXES:
                yield Path(entry.path).relative_to(root).as_posix()
            else:
                skipped += 1
    if skipped:
        _log.warning(
            "%s: %d files are not images by their extension and were ignored", folder, skipped
        )
