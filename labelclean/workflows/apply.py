"""`labelclean apply`: put a patch into the data it was made for, or take it out again."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from labelclean.atomic import write_bytes
from labelclean.data.manifest import Manifest
from labelclean.data.parquet import write_parquet
from labelclean.data.read import read_manifest
from labelclean.data.tables import METADATA_FILES, TABLE_SUFFIXES
from labelclean.data.textedit import relabelled, text_layout
from labelclean.data.write import write_manifest
from labelclean.errors import DataError, shortlist
from labelclean.outputs.patch_file import Patch
from labelclean.workflows.apply_folder import move_pictures, move_pictures_back
from labelclean.workflows.revert import rebuilt_text, undone_labels

BACKUP = ".orig"
"""Ending of the copy that is kept of a file whose bytes a patch cannot bring back."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done to a target, or would be.

    Args:
        target: What was changed.
        relabelled: Rows whose label changed.
        left_out: Rows that left or came back.
        original_bytes: After a revert, whether the target is what it was; None: not reverted.
    """

    target: Path
    relabelled: int
    left_out: int
    original_bytes: bool | None = None


def apply_to(
    patch: Patch,
    target: Path,
    *,
    revert: bool = False,
    dry_run: bool = False,
    label_col: str | None = None,
    budget: float = 1.0,
) -> Applied:
    """Apply a patch to a target, in place, or undo it.

    Args:
        patch: What to change.
        target: The table or image folder it was made for.
        revert: Undo it instead.
        dry_run: Check everything, change nothing.
        label_col: Column with the label; None: the first known name present.
        budget: Multiple of what the target may claim.

    Raises:
        DataError: The patch does not fit the target; nothing was changed.
    """
    gone = sum(line.new is None for line in patch.lines)
    done = Applied(target, len(patch.lines) - gone, gone)
    if not target.exists():
        raise DataError(f"{target} does not exist; name the table or folder that was audited.")
    file = target
    if target.is_dir():
        found = [target / name for name in METADATA_FILES if (target / name).is_file()]
        if not found:
            if not revert:
                move_pictures(patch, target, dry_run=dry_run)
                return done
            exact = move_pictures_back(patch, target, dry_run=dry_run)
            return replace(done, original_bytes=exact)
        file = found[0]
    if file.suffix.lower() not in TABLE_SUFFIXES:
        raise DataError(
            f"{file} is no table whose labels are changed in place ({', '.join(TABLE_SUFFIXES)}); "
            "export the corrected table instead: `labelclean export RUN clean.parquet`."
        )
    data = file.read_bytes()
    manifest = read_manifest(file, label_col=label_col, need_images=False, budget=budget)
    if revert:
        return replace(done, original_bytes=_revert_table(patch, manifest, file, data, dry_run))
    _require_fit(patch, manifest)
    if not dry_run:
        _apply_table(patch, manifest, file, data)
    return done


def _require_fit(patch: Patch, manifest: Manifest) -> None:
    """Refuse a table whose rows are not those the patch is about, labelled as they were."""
    if len(manifest) != patch.rows:
        raise DataError(
            f"{manifest.source} has {len(manifest)} rows, and the patch is about {patch.rows}; "
            "name the table that was audited. Is the patch applied already?"
        )
    names = manifest.label_values()
    faults, applied = [], 0
    for line in patch.lines:
        if str(manifest.sample_id[line.row]) != line.sample_id:
            faults.append(f"row {line.row} is {manifest.sample_id[line.row]}, not {line.sample_id}")
        elif str(names[line.row]) != str(line.old):
            applied += str(names[line.row]) == str(line.new)
            faults.append(f"row {line.row} carries {names[line.row]!r}, not {line.old!r}")
    if faults:
        hint = " The patch seems to be applied already." if applied == len(patch.lines) else ""
        raise DataError(f"the patch does not fit {manifest.source}: {shortlist(faults)}.{hint}")


def _apply_table(patch: Patch, manifest: Manifest, file: Path, data: bytes) -> None:
    dropped = frozenset(line.row for line in patch.lines if line.new is None)
    if len(dropped) == len(manifest):
        raise DataError(f"the patch leaves no row of {file}; nothing was changed.")
    layout = text_layout(manifest, data)
    if layout is not None:
        new = {line.row: line.new for line in patch.lines if line.new is not None}
        write_bytes(file, relabelled(layout, new, dropped))
        return
    backup = _backup(file)
    if backup.exists():
        raise DataError(
            f"{backup} is there already: a patch was applied before. Revert that one, or move the "
            "file away."
        )
    known = [str(name) for name in manifest.classes]
    more = [line.new for line in patch.lines if line.new is not None]
    classes = (*manifest.classes, *{str(n): n for n in more if str(n) not in known}.values())
    code = {str(name): at for at, name in enumerate(classes)}
    label = manifest.label.copy()
    for line in patch.lines:
        if line.new is not None:
            label[line.row] = code[str(line.new)]
    kept = np.array([row for row in range(len(manifest)) if row not in dropped])
    corrected = replace(manifest, classes=classes).with_label(label).with_rows(kept)
    write_bytes(backup, data)
    if file.suffix.lower() == ".parquet":
        write_parquet(file, corrected.table, {})
    else:
        write_manifest(corrected, file)


def _revert_table(patch: Patch, manifest: Manifest, file: Path, data: bytes, dry_run: bool) -> bool:
    """Undo a patch; tell whether the file has its original bytes again."""
    undone_labels(patch, manifest)
    backup = _backup(file)
    layout = text_layout(manifest, data)
    restored = None if layout is None else rebuilt_text(patch, layout)
    if restored is None and backup.is_file():
        restored = backup.read_bytes()
        if hashlib.sha256(restored).hexdigest() != patch.digest:
            raise DataError(
                f"{backup} is not the file the patch was made for; nothing was changed."
            )
    if restored is None:
        raise DataError(
            f"{file} cannot be restored without {backup.name}, the copy that `labelclean apply` "
            "keeps beside it."
        )
    if not dry_run:
        write_bytes(file, restored)
        backup.unlink(missing_ok=True)
    return hashlib.sha256(restored).hexdigest() == patch.digest


def _backup(file: Path) -> Path:
    return file.with_name(file.name + BACKUP)
