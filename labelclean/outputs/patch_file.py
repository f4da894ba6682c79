"""Patches as files: .patch.jsonl, a header and one change a line, to apply or to undo."""

import json
from dataclasses import dataclass
from pathlib import Path

from labelclean.data.manifest import Label
from labelclean.errors import DataError, shortlist

VERSION = 1
MARK = "labelclean_patch"
_RELABEL, _DROP = "relabel", "drop"


@dataclass(frozen=True, slots=True)
class Line:
    """One change.

    Args:
        row: Row of the audited manifest.
        sample_id: Its identity.
        old: Label before.
        new: Label after; None where the row was left out.
        text: What stood in a text manifest, where it cannot be told from `old`: the label cell,
            or the whole record of a row that was left out.
    """

    row: int
    sample_id: str
    old: Label
    new: Label | None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Patch:
    """What was changed in a manifest.

    Args:
        name: File name of the audited manifest.
        digest: SHA-256 of it.
        rows: Its number of rows.
        classes: Its classes.
        lines: The changes, in order of rows.
    """

    name: str
    digest: str
    rows: int
    classes: tuple[Label, ...]
    lines: tuple[Line, ...]


def format_patch(patch: Patch) -> bytes:
    """Write a patch as JSON lines."""
    entries: list[dict[str, object]] = [
        {
            MARK: VERSION,
            "input": {"name": patch.name, "digest": patch.digest, "rows": patch.rows},
            "classes": list(patch.classes),
        }
    ]
    for line in patch.lines:
        entry: dict[str, object] = {
            "row": line.row,
            "sample_id": line.sample_id,
            "from": line.old,
            "to": line.new,
            "action": _DROP if line.new is None else _RELABEL,
        }
        entries.append(entry if line.text is None else {**entry, "text": line.text})
    return "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries).encode()


def read_patch(path: Path) -> Patch:
    """Read a patch.

    Raises:
        DataError: The file cannot be read or is no patch; every wrong line is named.
    """
    try:
        texts = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"patch {path} cannot be read: {error}.") from error
    try:
        head = json.loads(texts[0])
        version, source = head[MARK], head["input"]
        name, digest, rows = str(source["name"]), str(source["digest"]), int(source["rows"])
        classes = tuple(head["classes"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}, line 1 is no header of a labelclean patch ({error}).") from error
    if version != VERSION:
        raise DataError(f"{path}: patch version {version!r}; this labelclean reads {VERSION}.")
    lines: list[Line] = []
    faults, seen = [], -1
    for number, text in enumerate(texts[1:], 2):
        if not text.strip():
            continue
        try:
            line = _line(text, rows, classes)
            if line.row <= seen:
                raise ValueError(f"row {line.row} is out of order or changed twice")
        except (ValueError, KeyError, TypeError) as error:
            faults.append(f"line {number}: {error}")
            continue
        seen = line.row
        lines.append(line)
    if faults:
        raise DataError(f"{path} is damaged ({shortlist(faults)}); export the patch again.")
    return Patch(name, digest, rows, classes, tuple(lines))


def _line(text: str, rows: int, classes: tuple[Label, ...]) -> Line:
    entry = json.loads(text)
    row, old, new, kept = entry["row"], entry["from"], entry["to"], entry.get("text")
    if type(row) is not int or not 0 <= row < rows:
        raise ValueError(f"row {row!r} is not in 0 to {rows - 1}")
    action = entry["action"]
    if action not in (_RELABEL, _DROP) or (action == _DROP) != (new is None):
        raise ValueError(f"action {action!r} does not go with the label {new!r}")
    wrong = [label for label in (old, new) if label is not None and label not in classes]
    if wrong or old is None:
        raise ValueError(f"label {wrong[0] if wrong else None!r} is not among the classes")
    if not isinstance(kept, str | None):
        raise ValueError("text is no text")
    return Line(row, str(entry["sample_id"]), old, new, kept)
