"""Every hostile file ends in the right rows or in a message; never in a traceback or in code."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hostile_corpus import arrays, folders, manifests, words
from hostile_corpus.case import Case
from planted import command

LEAST = 60


@pytest.mark.slow
@pytest.mark.usefixtures("plain_figures")
@pytest.mark.parametrize("room", [manifests, arrays, folders, words], ids=lambda m: m.__name__)
def test_hostile_files(room, tmp_path):
    faults = []
    count = 0
    for case in room.build(tmp_path / "stage"):
        count += 1
        faults += [f"{case.name}: {fault}" for fault in meet(case)]
    assert not faults, "\n".join(faults)
    assert count >= LEAST // 4
    assert not (tmp_path / "stage/ran").exists(), "code in a file was run"


def meet(case: Case) -> list[str]:
    """Run the command on the file; list what is not as it must be."""
    done = command(*case.arguments)
    faults = []
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        faults.append(f"{type(done.exception).__name__}: {str(done.exception)[:200]}")
    elif done.exit_code != case.code:
        faults.append(f"exit {done.exit_code}, not {case.code}: {done.output[-300:]}")
    elif case.words not in done.output:
        faults.append(f"says nothing of {case.words!r}: {done.output[-300:]}")
    elif case.code and "Error: " not in done.output and case.arguments[0] != "check":
        faults.append(f"no message: {done.output[-300:]}")
    if len(done.output) > 20_000:
        faults.append(f"floods the screen: {len(done.output)} characters")
    if case.rows is not None and not faults:
        out = Path(case.arguments[case.arguments.index("--out") + 1])
        rows = sorted(pq.read_table(out / "issues.parquet")["row"].to_pylist())
        if rows != list(range(case.rows)):
            faults.append(f"rows {rows[:5]}... of {len(rows)}")
    return faults
