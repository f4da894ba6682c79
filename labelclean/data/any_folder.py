"""A folder as a manifest, whatever it holds: pictures, shards, or a saved data set."""

from pathlib import Path

from labelclean.data.budget import Budget
from labelclean.data.folders import IMAGE_SUFFIXES, folder_table, read_folder
from labelclean.data.many_files import read_shards, shards_in
from labelclean.data.places import Place, RemotePath
from labelclean.data.saved_datasets import is_saved_dataset, read_saved_dataset
from labelclean.data.tables import METADATA_FILES, RawTable, read_table_file


def read_any_folder(
    folder: Place, allow_outside_root: bool, need_labels: bool, budget: Budget
) -> RawTable:
    """Read a folder as a manifest.

    Args:
        folder: A saved data set, an imagefolder with metadata, tar or Parquet shards, or one
            sub-folder of pictures per class.
        allow_outside_root: Follow links that lead outside.
        need_labels: Whether samples without a label are refused.
        budget: What is read at most.

    Raises:
        DataError: It holds nothing that can be read, or something that is damaged.
    """
    if is_saved_dataset(folder):
        return read_saved_dataset(folder, budget)
    if not any((folder / name).is_file() for name in METADATA_FILES):
        shards = shards_in(folder)
        if shards and not _has_pictures(folder):
            return read_shards(folder, shards, need_labels, budget)
    if isinstance(folder, RemotePath):
        return _read_remote(folder, need_labels, budget)
    return read_folder(
        folder, allow_outside_root=allow_outside_root, need_labels=need_labels, budget=budget
    )


def _has_pictures(folder: Place) -> bool:
    if isinstance(folder, RemotePath):
        return any(_is_picture(name) for name in folder.files())
    return any(_is_picture(path.name) for path in folder.rglob("*"))


def _is_picture(name: str) -> bool:
    return Path(name).suffix.lower() in IMAGE_SUFFIXES


def _read_remote(folder: RemotePath, need_labels: bool, budget: Budget) -> RawTable:
    for name in METADATA_FILES:
        if (folder / name).is_file():
            return read_table_file(folder / name, need_labels, budget)
    names = [
        name
        for name in folder.files()
        if _is_picture(name) and not any(part.startswith(".") for part in name.split("/"))
    ]
    return folder_table(folder, names, need_labels)
