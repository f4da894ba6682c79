"""Small files that claim to be huge are refused in a moment, and read where that is asked for."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faults.bombs import BOMBS, nested_jsonl
from finished_runs import restated
from labelclean.data.budget import Budget
from labelclean.data.read import read_manifest
from labelclean.errors import ConfigError, DataError
from planted import audit_probs, command, plant

CHECK = """
import resource, sys
from labelclean.cli import cli
try:
    cli.main(["check", sys.argv[1]], standalone_mode=True)
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    # Of this program alone: ru_maxrss also knows the process that started it.
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(used.ru_utime + used.ru_stime, int(peak.split()[1]) * 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is told otherwise elsewhere")
@pytest.mark.parametrize(("build", "words"), BOMBS, ids=lambda one: getattr(one, "__name__", ""))
def test_a_bomb_is_refused_within_five_seconds_and_a_gigabyte(build, words, tmp_path):
    path = build(tmp_path)
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(path)],
        env={**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds, memory = map(float, done.stdout.split())
    assert done.returncode == 3, done.stderr[-500:]
    assert words in done.stderr
    assert seconds < 5
    assert memory < 2**30


def test_limits_can_be_raised(tmp_path):
    path = nested_jsonl(tmp_path)
    with pytest.raises(DataError, match=r"901 levels.*--budget 15"):
        read_manifest(path, need_images=False)
    assert "at most 64" in command("check", path).stderr
    shallow = tmp_path / "shallow.jsonl"
    lines = [f'{{"image": "a", "label": {row}, "more": {"[" * 80}{"]" * 80}}}\n' for row in (0, 1)]
    shallow.write_text("".join(lines))
    with pytest.raises(DataError, match="81 levels"):
        read_manifest(shallow, need_images=False)
    assert len(read_manifest(shallow, need_images=False, budget=2)) == 2
    with pytest.raises(ConfigError, match="more than 0"):
        Budget(0)


def test_what_lies_on_the_disk_is_read_however_much_it_is(monkeypatch, tmp_path):
    """Only what unpacks to many times its size is suspect."""
    monkeypatch.setattr("labelclean.data.budget.MOST_UNPACKED", 1000)
    path = tmp_path / "d.npz"
    rng = np.random.default_rng(0)
    np.savez_compressed(path, X=rng.random((100, 50), np.float32), y=np.arange(100) % 2)
    assert len(read_manifest(path)) == 100
    np.savez_compressed(path, X=np.zeros((100, 50), np.float32), y=np.arange(100) % 2)
    with pytest.raises(DataError, match="20,800 bytes unpacked"):
        read_manifest(path)


def test_tables_of_a_run_are_bounded_too(tmp_path, monkeypatch):
    """A run folder may come from elsewhere, with digests that fit."""
    monkeypatch.setattr("labelclean.outputs.run_folder.matrix_png", lambda *_, **__: b"a picture")
    data = plant(tmp_path, rows=60, planted=6)
    run = audit_probs(data, tmp_path / "run")
    table = pq.read_table(run / "issues.parquet")
    pq.write_table(pa.concat_tables([table] * 2), run / "issues.parquet")
    monkeypatch.setattr("labelclean.data.budget.MOST_TABLE_ROWS", 100)
    done = command("export", restated(run), tmp_path / "o.csv")
    assert done.exit_code == 3
    assert "claims 120 rows, and at most 100" in done.stderr
    assert "claims 120 rows" in command("verify", run).stderr
