"""A clock that leaps by years at every look changes no result and lets no lock be taken twice."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planted import plant

HERE = Path(__file__).resolve().parent
TABLES = ("issues.parquet", "corrected.parquet", "records.parquet")
OFFERED = ("--quiet", "--threads", "1")


@pytest.fixture(scope="module")
def leaping(tmp_path_factory):
    """Give the environment of a process whose clock leaps."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs a C compiler and a loader that takes LD_PRELOAD")
    library = tmp_path_factory.mktemp("clock") / "clock.so"
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", library, HERE / "clock.c"]
    subprocess.run(list(map(str, words)), check=True)
    return {"LD_PRELOAD": str(library)}


def labelclean(*words, **more):
    paths = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **more}
    return subprocess.Popen(
        [sys.executable, "-m", "labelclean", *map(str, words)],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended(process):
    out, said = process.communicate(timeout=900)
    assert "Traceback" not in said, said
    return process.returncode, out + said


@pytest.mark.slow
def test_a_leaping_clock(leaping, tmp_path):
    seen = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time()); print(time.time())"],
        env={**os.environ, **leaping}, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert abs(float(seen[0]) - time.time()) + abs(float(seen[1]) - time.time()) > 86_000
    data = plant(tmp_path, rows=90, planted=9)
    flags = ("--features", data.features, "--epochs", 3, "--loss", "gce", *OFFERED)
    steady = labelclean("audit", data.table, *flags, "--out", tmp_path / "steady")
    assert ended(steady)[0] == 0
    for number, path in enumerate(sorted(tmp_path.glob("*.npy"))):
        os.utime(path, (number * 1e9 * 2, number * 1e9 * 2))  # of 1970 and of 2033
    one = labelclean("audit", data.table, *flags, "--out", tmp_path / "run", **leaping)
    two = labelclean("audit", data.table, *flags, "--out", tmp_path / "run", "--wait", **leaping)
    codes = sorted((ended(one)[0], ended(two)[0]))
    assert codes in ([0, 1], [0, 2])  # who came second found a lock, or a finished run
    for name in TABLES:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "steady" / name).read_bytes()
    for words in (("report", tmp_path / "run"), ("verify", tmp_path / "run")):
        code, said = ended(labelclean(*words, **leaping))
        assert code == 0, said
