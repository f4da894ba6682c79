"""decisions.jsonl: what people decided about rows, read strictly."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from labelclean.correction.answers import Heard
from labelclean.correction.decisions import Decision, History, check_decision, class_codes
from labelclean.data.manifest import Manifest
from labelclean.errors import DataError, shortlist

SAMPLE_FILE = "decisions.plan.json"


def read_decisions(path: Path, manifest: Manifest) -> dict[int, Decision]:
    """Read the decisions about the rows of a manifest that count.

    Raises:
        DataError: As `read_history`.
    """
    return read_history(path, manifest).current


def read_history(path: Path, manifest: Manifest, *, torn: bool = False) -> History:
    """Read all decisions about the rows of a manifest.

    Args:
        path: decisions.jsonl.
        manifest: What was audited.
        torn: Pass over a last line without its end, which a crash may leave; the next review
            moves it away.

    Raises:
        DataError: The file cannot be read, or lines are not decisions about these rows; every
            such line is named.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"decisions {path} cannot be read: {error}.") from error
    if torn:
        text = text[: text.rfind("\n") + 1]
    codes = class_codes(manifest)
    found = History()
    faults = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found.add(*_decision(line, manifest, codes))
        except ValueError as error:
            faults.append(f"line {number}: {error}")
    if faults:
        raise DataError(
            f"{path} holds {len(faults)} lines that are no decisions about {manifest.source.name} "
            f"({shortlist(faults)}). Correct or remove them."
        )
    return found


def read_heard(path: Path, manifest: Manifest) -> Heard:
    """Read decisions, and how far they are answers to the sample that was drawn beside them.

    Raises:
        DataError: As `read_history`.
    """
    history = read_history(path, manifest)
    began = read_sample_start(path.parent)
    if began is None or began.input_digest != manifest.digest or began.lines > len(history.log):
        return Heard(history.current)
    before = History(history.log[: began.lines]).current
    return Heard(history.current, tuple(before), began.lines, began.judgement)


@dataclass(frozen=True, slots=True)
class SampleStart:
    """When a sample was drawn: beside the decisions, so that a restart goes on with the same one.

    Args:
        input_digest: What was audited.
        judgement: Digest of what the run itself said.
        lines: How many lines of decisions there were.
    """

    input_digest: str
    judgement: str
    lines: int


def read_sample_start(folder: Path) -> SampleStart | None:
    """Read when the sample of a review was drawn; None where that is not known."""
    try:
        found = json.loads((folder / SAMPLE_FILE).read_text(encoding="utf-8"))
        start = SampleStart(found["input"], found["judgement"], found["lines"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    sound = isinstance(start.input_digest, str) and isinstance(start.judgement, str)
    return start if sound and isinstance(start.lines, int) and start.lines >= 0 else None


def _decision(line: str, manifest: Manifest, codes: Mapping[str, int]) -> tuple[int, Decision]:
    try:
        entry = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not valid JSON ({error})") from error
    return check_decision(entry, manifest, codes)
