"""decisions.jsonl while people decide: append-only, one writer, on disk before it is acknowledged.

Lines are only ever added. A line that a crash tore is moved to decisions.jsonl.torn; every whole
line stays. What has been written is what counts: the state in memory is only changed after the
line is safe.
"""

import json
import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from labelclean.atomic import one_writer, sync_folder, target_lock
from labelclean.correction.decisions import UNDO, Decision, History
from labelclean.data.manifest import Manifest
from labelclean.errors import OutputError
from labelclean.runs.decisions_file import read_history

DECISIONS_FILE = "decisions.jsonl"
TORN = ".torn"


class Journal:
    """The decisions about a run, open for writing by this process alone.

    Safe to use from several threads.

    Args:
        folder: The run folder.
        manifest: What was audited; every decision must be about its rows.

    Raises:
        OutputError: Another journal of this run is open.
        DataError: The file holds lines that are no decisions about these rows.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.path, self._manifest = folder / DECISIONS_FILE, manifest
        self._guard = threading.Lock()
        with ExitStack() as undo:
            undo.enter_context(one_writer(target_lock(self.path), "review", alone=True))
            self._file = self.path.open("ab+", buffering=0)
            undo.callback(self._close)
            _mend(self.path)
            sync_folder(folder)
            self.history: History = read_history(self.path, manifest)
            self._undo = undo.pop_all()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._undo.close()

    def _close(self) -> None:
        unused = self._file.seek(0, os.SEEK_END) == 0
        self._file.close()
        if unused:
            self.path.unlink(missing_ok=True)

    def add(self, row: int, decision: Decision) -> None:
        """Store a decision; when this returns, it is on disk."""
        self.add_all([(row, decision)])

    def add_all(self, decisions: Sequence[tuple[int, Decision]]) -> None:
        """Store decisions in one write; when this returns, all of them are on disk."""
        with self._guard:
            self._write([self._line(row, decision) for row, decision in decisions])
            for row, decision in decisions:
                self.history.add(row, decision)

    def undo(self) -> dict[str, object] | None:
        """Take back the latest decision that still counts; give it, or None if there is none."""
        with self._guard:
            last = self.history.last()
            if last is None:
                return None
            row, decision = last
            self._write([self._line(row, Decision(UNDO, None))])
            self.history.add(row, Decision(UNDO, None))
            return self._line(row, decision)

    def _line(self, row: int, decision: Decision) -> dict[str, object]:
        name = None if decision.label is None else str(self._manifest.classes[decision.label])
        return {
            "row": row,
            "sample_id": str(self._manifest.sample_id[row]),
            "decision": decision.what,
            "label": name,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }

    def _write(self, lines: Sequence[dict[str, object]]) -> None:
        """Append lines and wait until the disk has them."""
        self._require_same_file()
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        before = self._file.seek(0, os.SEEK_END)
        try:
            written = self._file.write(content)
            if written != len(content):
                raise OSError(f"only {written} of {len(content)} bytes were written")
            os.fsync(self._file.fileno())
        except OSError as error:
            # What was not acknowledged must not be there after the next start.
            self._file.truncate(before)
            raise OutputError(
                f"{self.path} cannot be written ({error}); the decision was not saved. Make room "
                "or mend the disk, then decide again."
            ) from error

    def _require_same_file(self) -> None:
        """Refuse to write into a file that nobody would find again."""
        try:
            same = os.path.samestat(self.path.stat(), os.fstat(self._file.fileno()))
        except OSError:
            same = False
        if not same:
            raise OutputError(
                f"{self.path} was removed or replaced while it was in use; nothing was saved. "
                "Start `labelclean review` again."
            )


def _mend(path: Path) -> None:
    """Make the file end with a whole line: finish the last one, or move it out of the way."""
    content = path.read_bytes()
    tail = content[content.rfind(b"\n") + 1 :]
    if not tail:
        return
    with path.open("rb+") as file:
        if _is_whole(tail):
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
        else:
            _keep_torn(path.with_name(path.name + TORN), tail)
            file.truncate(len(content) - len(tail))
        file.flush()
        os.fsync(file.fileno())


def _is_whole(line: bytes) -> bool:
    """Tell a last line that only lacks its end from one that was torn.

    One about other rows is whole: a fault to report, never to cut off.
    """
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _keep_torn(path: Path, tail: bytes) -> None:
    with path.open("ab") as file:
        file.write(tail + b"\n")
        file.flush()
        os.fsync(file.fileno())
