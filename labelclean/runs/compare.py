"""Two audits of the same data: what changed between them."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from labelclean.correction.actions import KEEP, UNREADABLE
from labelclean.correction.result import Audit
from labelclean.errors import DataError
from labelclean.runs.issues import ISSUES, read_run_table
from labelclean.runs.reading import read_facts


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier run, as far as it is compared.

    Args:
        folder: Where it is.
        noise_rate: Its estimate.
        found: Sample id to what was found: action and suggested label, as text.
    """

    folder: Path
    noise_rate: float | None
    found: dict[str, tuple[str, str]]


def read_earlier(folder: Path) -> Earlier:
    """Read an earlier run.

    Raises:
        DataError: The folder holds no finished run.
    """
    facts = read_facts(folder)
    table = read_run_table(folder / ISSUES, facts)
    columns: list[pa.ChunkedArray] = []
    for name in ("sample_id", "action", "label_suggested"):
        if name not in table.column_names:
            raise DataError(f"{folder / ISSUES} has no column {name!r}; audit that data again.")
        columns.append(table[name].to_pylist())
    found = {
        str(one): (str(action), str(label)) for one, action, label in zip(*columns, strict=True)
    }
    return Earlier(folder, facts.get("noise_rate"), found)


def compare_runs(earlier: Earlier, audit: Audit) -> dict[str, object]:
    """Say what changed, by sample id, most suspect first.

    Raises:
        DataError: The two runs share no sample.
    """
    classes = audit.manifest.classes
    now = {
        str(one): (str(action), str(classes[code]))
        for one, action, code in zip(
            audit.manifest.sample_id[audit.row], audit.action, audit.suggested, strict=True
        )
    }
    shared = [one for one in now if one in earlier.found]
    if not shared:
        raise DataError(
            f"{earlier.folder} and this run share no sample_id; they are not about the same data."
        )
    quiet = (KEEP, UNREADABLE)
    before = {one: earlier.found[one][0] not in quiet for one in shared}
    after = {one: now[one][0] not in quiet for one in shared}
    return {
        "run": earlier.folder.as_posix(),
        "noise_rate_before": earlier.noise_rate,
        "noise_rate_after": audit.noise_rate,
        "newly_flagged": [one for one in shared if after[one] and not before[one]],
        "no_longer_flagged": [one for one in shared if before[one] and not after[one]],
        "changed_suggestions": [
            one
            for one in shared
            if before[one] and after[one] and now[one][1] != earlier.found[one][1]
        ],
        "only_before": [one for one in earlier.found if one not in now],
        "only_after": [one for one in now if one not in earlier.found],
    }
