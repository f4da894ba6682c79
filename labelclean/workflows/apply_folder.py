"""A patch in a folder of pictures: they move between class folders, and back.

What is to be moved is written down before the first picture moves, so that a run that was killed
can be gone on with or undone.
"""

import json
from pathlib import Path, PurePosixPath

from labelclean.atomic import write_bytes
from labelclean.data.read import read_manifest
from labelclean.errors import DataError, shortlist
from labelclean.outputs.patch_file import Patch

JOURNAL, DROPPED = ".labelclean-apply.json", ".labelclean-dropped"
"""Hidden, so that no reader of image folders takes them for a class."""
Moves = list[tuple[str, str]]


def move_pictures(patch: Patch, folder: Path, *, dry_run: bool) -> None:
    """Move every picture to the folder of its new label; left out ones into a hidden folder.

    Raises:
        DataError: The folder is not the audited one, or holds a patch already.
    """
    journal = folder / JOURNAL
    if journal.is_file():
        known = _read(journal, patch)
        waiting = [one for one in known if (folder / one[0]).exists()]
        if not waiting:
            raise DataError(f"{folder}: the patch is applied already; --revert takes it out again.")
        _move(folder, waiting, dry_run)
        return
    manifest = read_manifest(folder, limit=patch.rows)  # as an audit of so many rows read it
    if manifest.digest != patch.digest:
        raise DataError(
            f"{folder} is not the folder the patch was made for: files were added, moved or "
            "removed since the audit. Audit it again."
        )
    classes = {str(name) for name in manifest.classes}
    strange = sorted({str(line.new) for line in patch.lines if line.new is not None} - classes)
    if strange:
        raise DataError(f"{folder} has no class folder {shortlist(strange)}.")
    moves: Moves = []
    taken = {str(path) for path in read_manifest(folder).path}
    for line in patch.lines:
        path = str(manifest.path[line.row])
        rest = path.split("/", 1)[1]
        place = f"{DROPPED}/{path}" if line.new is None else f"{line.new}/{rest}"
        moves.append((path, _free(place, taken)))
    if not dry_run:
        text = json.dumps({"patch": patch.digest, "moves": moves}, ensure_ascii=False)
        write_bytes(journal, text.encode())
    _move(folder, moves, dry_run)


def move_pictures_back(patch: Patch, folder: Path, *, dry_run: bool) -> bool:
    """Undo `move_pictures`; tell whether every picture is where it was.

    Raises:
        DataError: No patch was applied here, or another one.
    """
    journal = folder / JOURNAL
    if not journal.is_file():
        raise DataError(f"{folder}: no patch is applied here; nothing to revert.")
    moves = _read(journal, patch)
    back = [(there, here) for here, there in reversed(moves) if (folder / there).exists()]
    _move(folder, back, dry_run)
    if dry_run:
        return len(back) == len(moves)
    for path in sorted((folder / DROPPED).rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    if (folder / DROPPED).is_dir() and not any((folder / DROPPED).iterdir()):
        (folder / DROPPED).rmdir()
    journal.unlink()
    return read_manifest(folder).digest == patch.digest


def _free(place: str, taken: set[str]) -> str:
    """Give the place itself, or a numbered one where a picture of that name is already."""
    path, count, free = PurePosixPath(place), 1, place
    while free in taken:
        count += 1
        free = str(path.with_name(f"{path.stem}~{count}{path.suffix}"))
    taken.add(free)
    return free


def _move(folder: Path, moves: Moves, dry_run: bool) -> None:
    blocked = [there for _, there in moves if (folder / there).exists()]
    if blocked:
        raise DataError(f"{folder}: {shortlist(blocked)} is in the way; move it elsewhere first.")
    if dry_run:
        return
    for here, there in moves:
        (folder / there).parent.mkdir(parents=True, exist_ok=True)
        (folder / here).rename(folder / there)


def _read(journal: Path, patch: Patch) -> Moves:
    """Read what was moved; places outside the folder are refused."""
    try:
        found = json.loads(journal.read_text(encoding="utf-8"))
        moves = [(str(here), str(there)) for here, there in found["moves"]]
        digest = found["patch"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{journal} is damaged ({error}); put the pictures back by hand."
        ) from error
    paths = [PurePosixPath(path) for move in moves for path in move]
    if any(path.is_absolute() or ".." in path.parts for path in paths):
        raise DataError(f"{journal} names places outside the folder; nothing was moved.")
    if digest != patch.digest:
        raise DataError(f"{journal.parent} holds another patch; revert that one first.")
    return moves
