"""Two audits of the same samples: what changed between them, row by row.

Rows are matched by what is in them: the digest of the picture or of the features, else the
sample_id, else the path. The place in the table counts only where both runs read the very same
file, for rows come, go and move.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from labelclean.correction.actions import KEEP, UNREADABLE
from labelclean.errors import DataError
from labelclean.outputs.run_folder import RECORDS
from labelclean.runs.check import CONTENT
from labelclean.runs.issues import ISSUES, read_run_table
from labelclean.runs.reading import read_facts

_COLUMNS = ("row", "sample_id", "path", "label_given", "label_suggested", "action")
_NOTHING = bytes(32)


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A row of a run, as far as it is compared.

    Args:
        row: Its place in the table.
        name: Its sample_id.
        path: Of its picture; None: it has none.
        given: Its label, as text.
        suggested: The suggested label, as text.
        flagged: Whether it was flagged.
        content: Digest of its content; None: nothing was read.
    """

    row: int
    name: str
    path: str | None
    given: str
    suggested: str
    flagged: bool
    content: bytes | None


@dataclass(frozen=True, slots=True)
class RunLines:
    """A run, as far as it is compared.

    Args:
        folder: Where it is.
        digest: Of its input file.
        part: How many rows at even distances it took of that; None: all, or the first ones.
        noise_rate: Its estimate.
        classes: Names of its classes, as text.
        of_features: Whether the content is features somebody computed, not pictures.
        lines: Its audited rows, most suspect first.
    """

    folder: Path
    digest: str
    noise_rate: float | None
    classes: frozenset[str]
    of_features: bool
    lines: Sequence[ComparedRow]
    part: int | None = None

    @property
    def named(self) -> bool:
        """Whether sample_id is more than the row number."""
        return any(line.name != str(line.row) for line in self.lines)


def read_earlier(folder: Path) -> RunLines:
    """Read a run to compare with.

    Raises:
        DataError: The folder holds no finished run.
    """
    facts = read_facts(folder)
    table = read_run_table(folder / ISSUES, facts)
    missing = [name for name in _COLUMNS if name not in table.column_names]
    if missing:
        raise DataError(f"{folder / ISSUES} has no column {missing[0]!r}; audit that data again.")
    content = _contents(folder / RECORDS)
    columns = [table[name].to_pylist() for name in _COLUMNS]
    lines = [
        ComparedRow(
            row, str(name), path, str(given), str(suggested),
            action not in (KEEP, UNREADABLE), content.get(row),
        )
        for row, name, path, given, suggested, action in zip(*columns, strict=True)
    ]  # fmt: skip
    classes = frozenset(map(str, facts["classes"]))
    digest, rate = facts["input"]["digest"], facts.get("noise_rate")
    of_features = "features" in facts["input"] or facts["columns"].get("image") is None
    part = facts["input"]["rows"] if "even_part_of" in facts["input"] else None
    return RunLines(folder, digest, rate, classes, of_features, lines, part)


def require_alike(earlier: RunLines, classes: Iterable[object], source: str) -> None:
    """Refuse, before anything dear is done, a baseline that shares no class with the data.

    Raises:
        DataError: It is about other data.
    """
    if earlier.classes.isdisjoint(map(str, classes)):
        raise DataError(
            f"--baseline {earlier.folder} and {source} share no class; they are not about the "
            "same data. Name the run of an earlier version of this data set."
        )


def compare_runs(earlier: RunLines, now: RunLines) -> dict[str, object]:
    """Say what changed, by sample id, most suspect first.

    Raises:
        DataError: The two runs are about other samples, or nothing tells which row is which.
    """
    pairs, by = _match(earlier, now)
    if not pairs:
        raise DataError(
            f"--baseline {earlier.folder} and {now.folder} share no sample: {_why(earlier, now)} "
            f"The audit itself is complete in {now.folder}."
        )
    both = [(old, new) for new in now.lines for old in (pairs.get(new.row),) if old is not None]
    there, gone = {new.row for _, new in both}, {old.row for old, _ in both}
    return {
        "run": earlier.folder.as_posix(),
        "matched": {"by": by, "rows": len(both)},
        "noise_rate_before": earlier.noise_rate,
        "noise_rate_after": now.noise_rate,
        "changed_labels": [new.name for old, new in both if old.given != new.given],
        "newly_flagged": [new.name for old, new in both if new.flagged and not old.flagged],
        "no_longer_flagged": [new.name for old, new in both if old.flagged and not new.flagged],
        "changed_suggestions": [
            new.name
            for old, new in both
            if old.flagged and new.flagged and old.suggested != new.suggested
        ],
        "only_before": [line.name for line in earlier.lines if line.row not in gone],
        "only_after": [line.name for line in now.lines if line.row not in there],
    }


def _contents(path: Path) -> dict[int, bytes]:
    if not path.is_file():
        return {}
    try:
        if CONTENT not in pq.read_schema(path).names:
            return {}
        table = pq.read_table(path, columns=["row", CONTENT])
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read ({error}); audit that data again.") from error
    found = zip(table["row"].to_pylist(), table[CONTENT].to_pylist(), strict=True)
    return {row: content for row, content in found if content not in (None, _NOTHING)}


def _match(earlier: RunLines, now: RunLines) -> tuple[dict[int, ComparedRow], str]:
    """Give the earlier line of every row that has one, and what tells which is which."""
    if (earlier.digest, earlier.part) == (now.digest, now.part):
        by_row = {line.row: line for line in earlier.lines}
        return {line.row: by_row[line.row] for line in now.lines if line.row in by_row}, "file"
    pairs: dict[int, ComparedRow] = {}
    free, waiting = list(earlier.lines), list(now.lines)
    named = earlier.named and now.named
    read = any(line.content for line in free) and any(line.content for line in waiting)
    read &= earlier.of_features == now.of_features
    # Of several rows with one content, that with the same name or label is the same one.
    keys = ("sample_id", "path") if named else ("path",)
    rounds: list[tuple[str, ...]] = []
    if read:
        rounds = [("content", key) for key in keys]
        rounds += [("content", "given"), ("content",)]
    by = "content"
    for fields in rounds:
        free, waiting = _pair(free, waiting, fields, pairs)
    if read and not pairs and not now.of_features:
        return {}, by  # other pictures under the same names are another data set
    for key in keys:
        before = len(pairs)
        free, waiting = _pair(free, waiting, (key,), pairs)
        if len(pairs) > before:
            by = f"{by}, {key}" if before else key
    return pairs, by


def _pair(
    free: list[ComparedRow],
    waiting: list[ComparedRow],
    fields: tuple[str, ...],
    pairs: dict[int, ComparedRow],
) -> tuple[list[ComparedRow], list[ComparedRow]]:
    """Match lines that agree in some fields, in order; give what is left of both."""
    known: dict[Hashable, list[ComparedRow]] = defaultdict(list)
    for line in reversed(free):
        known[_key(line, fields)].append(line)
    known.pop(None, None)
    taken, left = set(), []
    for line in waiting:
        same = known.get(_key(line, fields))
        if same:
            pairs[line.row] = same.pop()
            taken.add(pairs[line.row].row)
        else:
            left.append(line)
    return [line for line in free if line.row not in taken], left


def _key(line: ComparedRow, fields: tuple[str, ...]) -> Hashable:
    """Give what lines are matched by; None where a part of it is not known."""
    parts = tuple(line.name if name == "sample_id" else getattr(line, name) for name in fields)
    return None if any(part in (None, "") for part in parts) else parts


def _why(earlier: RunLines, now: RunLines) -> str:
    read = [any(line.content for line in run.lines) for run in (earlier, now)]
    if all(read) and not (earlier.of_features or now.of_features):
        return "no picture is the same in both, so it is another data set."
    if not (earlier.named and now.named) and not any(line.path for line in now.lines):
        return (
            "without pictures, features or a column sample_id nothing tells which row is which; "
            "add a column sample_id to both."
        )
    return "neither sample_id nor path agrees anywhere, so it is another data set."
