"""Undo a patch: the labels it changed, the rows it left out, and the bytes around them."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean.atomic import write_bytes
from labelclean.correction.patch import Change, revert_patch
from labelclean.data.manifest import Manifest
from labelclean.data.places import Place
from labelclean.data.textedit import TextLayout, cell_text, edited, text_layout
from labelclean.data.write import write_manifest
from labelclean.errors import ConfigError, DataError, shortlist
from labelclean.outputs.patch_file import Patch
from labelclean.runs.reading import original_path, read_again, read_facts


def revert(folder: Path, patch: Patch, source: Place, target: Path) -> bool:
    """Undo a patch in a corrected table.

    Args:
        folder: The run the patch was exported from.
        patch: What to undo.
        source: The corrected table.
        target: Where to write; may be `source`.

    Returns:
        Whether the target now has the original bytes. If not, the labels are the original ones
        and everything else is as in `source`.

    Raises:
        DataError: The patch belongs to another run, or does not fit the table.
    """
    facts = read_facts(folder)
    if patch.digest != facts["input"]["digest"]:
        raise DataError(
            f"the patch is about the input {patch.digest}, the run {folder} about "
            f"{facts['input']['digest']}; name the run it was exported from."
        )
    if source.is_dir():
        raise ConfigError(f"{source} is a folder; --revert works on tables.")
    if not source.is_file():
        raise DataError(f"{source} does not exist; name the corrected table with --manifest.")
    data = source.read_bytes()
    if _digest(data) == patch.digest and source.suffix == target.suffix:
        write_bytes(target, data)
        return True
    corrected = read_again(folder, facts, source)
    label = undone_labels(patch, corrected)
    restored = None
    if source.suffix.lower() == target.suffix.lower():
        layout = text_layout(corrected, data)
        restored = None if layout is None else rebuilt_text(patch, layout)
    if restored is not None and _digest(restored) == patch.digest:
        write_bytes(target, restored)
        return True
    return _from_original(folder, facts, patch, corrected, label, target, restored)


def undone_labels(patch: Patch, corrected: Manifest) -> NDArray[np.int64]:
    """(n,) the labels of the rows that are still there, as they were."""
    gone = {line.row for line in patch.lines if line.new is None}
    if len(corrected) != patch.rows - len(gone):
        raise DataError(
            f"{corrected.source} has {len(corrected)} rows; after this patch there must be "
            f"{patch.rows - len(gone)}. It is not the table the patch made."
        )
    codes = {str(name): at for at, name in enumerate(patch.classes)}
    names = [str(name) for name in corrected.label_values()]
    unknown = sorted({name for name in names if name not in codes})
    if unknown:
        raise DataError(
            f"{corrected.source} has labels the patch does not know: {shortlist(unknown)}."
        )
    now = np.array([codes[name] for name in names], dtype=np.int64)
    kept = [row for row in range(patch.rows) if row not in gone]
    place = {row: at for at, row in enumerate(kept)}
    changes = [
        Change(place[line.row], codes[str(line.old)], codes[str(line.new)])
        for line in patch.lines
        if line.new is not None
    ]
    return revert_patch(now, changes)


def rebuilt_text(patch: Patch, layout: TextLayout) -> bytes | None:
    """Put the old cells and the left-out records back; None where a record is not known."""
    lines = {line.row: line for line in patch.lines}
    records = iter(layout.records)
    parts = [layout.head]
    for row in range(patch.rows):
        line = lines.get(row)
        if line is None:
            parts.append(next(records))
        elif line.new is not None:
            record = next(records)
            text = line.text or layout.render(line.old, cell_text(layout, record))
            parts.append(edited(layout, record, text))
        elif line.text is not None:
            parts.append(line.text.encode())
        else:
            return None
    return b"".join([*parts, layout.tail])


def _from_original(
    folder: Path,
    facts: Mapping[str, Any],
    patch: Patch,
    corrected: Manifest,
    label: NDArray[np.int64],
    target: Path,
    restored: bytes | None,
) -> bool:
    """Take the bytes of the audited manifest, if nothing but labels and paths differs from it."""
    place = original_path(folder, facts)
    original = read_again(folder, facts, place) if place.exists() else None
    if original is not None and original.digest == patch.digest:
        if _same(original, corrected, patch, label):
            if place.suffix.lower() == target.suffix.lower() and place.is_file():
                write_bytes(target, place.read_bytes())
                return True
            write_manifest(original, target)
            return False
    elif target.resolve() == place.resolve():
        raise ConfigError(f"{target} would not get its original bytes; name another target.")
    if restored is None:
        raise DataError(
            f"{corrected.source} cannot be restored without the audited manifest {place}; put it "
            "back, or revert a text export."
        )
    write_bytes(target, restored)
    return False


def _same(original: Manifest, corrected: Manifest, patch: Patch, label: NDArray[np.int64]) -> bool:
    gone = {line.row for line in patch.lines if line.new is None}
    kept = np.array([row for row in range(patch.rows) if row not in gone], dtype=np.int64)
    apart = {original.image_col, original.label_col}
    names = [name for name in original.table.column_names if name not in apart]
    if not set(names) <= set(corrected.table.column_names):
        return False
    before, after = original.table.select(names).take(kept), corrected.table.select(names)
    texts = [[str(value) for value in table.to_pylist()] for table in (before, after)]
    return texts[0] == texts[1] and bool(np.array_equal(original.label[kept], label))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
