"""Write a Manifest as an image folder that torchvision, timm and Hugging Face datasets can read.

One sub-folder per class holds the pictures; metadata.parquet beside them holds every column,
so that the exact labels, their types, all other columns and the row order survive.
"""

import hashlib
import io
import os
import re
import shutil
import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

from labelclean.atomic import atomic_path
from labelclean.data.folders import LINKED
from labelclean.data.images import ImageError
from labelclean.data.manifest import Label, Manifest
from labelclean.data.parquet import encode_parquet, parquet_metadata, relative_path
from labelclean.data.paths import confine
from labelclean.data.sources import open_source
from labelclean.data.stored_images import StoredImages
from labelclean.errors import OutputError

_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*%]')
_RESERVED = re.compile(r"^(con|prn|aux|nul|com\d|lpt\d)(\..*)?$", re.IGNORECASE)
_LONGEST = 80
_SUFFIXES = {
    "JPEG": ".jpg",
    "PNG": ".png",
    "WEBP": ".webp",
    "BMP": ".bmp",
    "GIF": ".gif",
    "TIFF": ".tif",
}


def write_image_folder(manifest: Manifest, target: Path, *, link: bool) -> None:
    """Write pictures into class folders plus metadata.parquet; the folder must be new or empty.

    Raises:
        OutputError: The folder holds something, the samples are no pictures, or a picture is gone.
    """
    if manifest.label_col is None:
        raise OutputError(f"{target}: an image folder needs labels, and none were read.")
    if not manifest.has_images:
        raise OutputError(f"{target}: features are no pictures; write .npz instead.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OutputError(f"{target} exists and is not an empty folder; name a new one.")
    folders = class_folders(manifest.classes)
    stems = picture_stems(manifest, folders)
    with atomic_path(target) as temporary:
        if target.is_dir():
            target.rmdir()
        for folder in folders:
            (temporary / folder).mkdir(parents=True)
        stored = _stored_images(manifest)
        names = []
        for row in range(len(manifest)):
            name = _place(manifest, row, temporary, stems[row], link, stored)
            names.append(name)
        origin: dict[str, object] = {}
        if link and manifest.image_root is not None:
            origin[LINKED] = relative_path(manifest.image_root, target)
        (temporary / "metadata.parquet").write_bytes(_metadata(manifest, names, origin))


def class_folders(classes: tuple[Label, ...]) -> list[str]:
    """Give each class a folder name that every file system takes and no other class has."""
    taken: set[str] = set()
    folders = []
    for label in classes:
        name = _UNSAFE.sub(lambda match: f"%{ord(match.group()):02X}", str(label))
        if name.startswith(".") or name.endswith((".", " ")) or _RESERVED.match(name):
            name = f"%{name}%"
        if len(name.encode("utf-8", "replace")) > _LONGEST:
            mark = hashlib.sha256(str(label).encode("utf-8", "replace")).hexdigest()[:8]
            name = f"{name.encode('utf-8', 'replace')[:_LONGEST].decode('utf-8', 'ignore')}~{mark}"
        # Some file systems see neither case nor the way an accent is composed.
        plain, key, count = name, _folded(name), 1
        while key in taken:
            count += 1
            name = f"{plain}~{count}"
            key = _folded(name)
        taken.add(key)
        folders.append(name)
    return folders


def picture_stems(manifest: Manifest, folders: list[str]) -> list[str]:
    """Give every row the place of its picture, without the ending: the name it had, if it had one.

    Rows of one class with the same name, for some file systems, are numbered; pictures without a
    name are called by their row.
    """
    width = len(str(len(manifest) - 1))
    taken: set[str] = set()
    stems = []
    for row in range(len(manifest)):
        name = f"{row:0{width}d}"
        if manifest.arrays is None and _has_name(manifest, row):
            written = str(manifest.path[row]).replace("\\", "/").rsplit("/", 1)[-1]
            kept = _UNSAFE.sub(lambda match: f"%{ord(match.group()):02X}", Path(written).stem)
            odd = kept.startswith(".") or kept.endswith((".", " ")) or bool(_RESERVED.match(kept))
            if kept and not odd and len(kept.encode("utf-8", "replace")) <= _LONGEST:
                name = kept
        folder, plain, count = folders[manifest.label[row]], name, 1
        while _folded(f"{folder}/{name}") in taken:
            count += 1
            name = f"{plain}~{count}"
        taken.add(_folded(f"{folder}/{name}"))
        stems.append(f"{folder}/{name}")
    return stems


def _has_name(manifest: Manifest, row: int) -> bool:
    """Tell whether a row names its picture; bytes in a table may come without a name."""
    if _embedded(manifest, row) is None:
        return True
    value = manifest.table.column(manifest.image_col)[row].as_py()
    return isinstance(value, dict) and bool(value.get("path"))


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _place(
    manifest: Manifest, row: int, folder: Path, stem: str, link: bool, stored: StoredImages | None
) -> str:
    if manifest.arrays is not None:
        name = f"{stem}.png"
        pixels = np.squeeze(manifest.arrays[row])
        Image.fromarray(pixels).save(folder / name, format="PNG")
        return name
    content = _embedded(manifest, row)
    if content is not None:
        name = stem + _suffix(content)
        (folder / name).write_bytes(content)
        return name
    text = str(manifest.path[row])
    if stored is not None:
        name = stem + Path(text).suffix.lower()
        (folder / name).write_bytes(_content(stored, row, text))
        return name
    root = manifest.image_root if isinstance(manifest.image_root, Path) else Path()
    origin = confine(root, text, manifest.allow_outside_root)
    name = stem + Path(text).suffix.lower()
    if not origin.is_file():
        raise OutputError(
            f"row {row}: the picture {text!r} is missing, so the folder would lose a sample; "
            "restore it or remove the row."
        )
    if link:
        (folder / name).symlink_to(os.path.abspath(origin))  # noqa: PTH100 - resolve() would follow links
    else:
        shutil.copyfile(origin, folder / name)
    return name


def _stored_images(manifest: Manifest) -> StoredImages | None:
    """Give what reads pictures in stores and shards; None where all are files or bytes."""
    if manifest.arrays is not None or not manifest.has_images:
        return None
    source = open_source(manifest)
    return source if isinstance(source, StoredImages) else None


def _content(stored: StoredImages, row: int, text: str) -> bytes:
    try:
        return stored.read(row)
    except ImageError as error:
        raise OutputError(
            f"row {row}: the picture {text!r} cannot be read ({error.reason}), so the folder would "
            "lose a sample; restore it or remove the row."
        ) from error


def _embedded(manifest: Manifest, row: int) -> bytes | None:
    if manifest.image_col is None:
        return None
    value = manifest.table.column(manifest.image_col)[row].as_py()
    content = value.get("bytes") if isinstance(value, dict) else value
    return content if isinstance(content, bytes) else None


def _suffix(content: bytes) -> str:
    try:
        with Image.open(io.BytesIO(content), formats=list(_SUFFIXES)) as image:
            return _SUFFIXES[image.format or "PNG"]
    except OSError:
        return ".bin"  # kept as it is: an unreadable picture is still a row


def _metadata(manifest: Manifest, names: list[str], origin: dict[str, object]) -> bytes:
    table = manifest.table
    files = pa.array(names, pa.string())
    others = [name for name in table.column_names if name != manifest.image_col]
    if "file_name" in others:
        raise OutputError(
            "the table has a column 'file_name' that is not the image column; rename it, because "
            "an image folder keeps its picture names there."
        )
    if manifest.image_col is None:
        table = table.add_column(0, "file_name", files)
    else:
        position = table.column_names.index(manifest.image_col)
        table = table.set_column(position, "file_name", files)
    # Others' notes about the columns (pandas, datasets) speak of the image column that is gone.
    bare = table.replace_schema_metadata(None)
    return encode_parquet(
        bare, parquet_metadata(replace(manifest, image_root=None), Path(), **origin)
    )
