"""The audits of very much data, scaled down: under a cap, every row once, few bytes a row."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
MORE = {"features": ("1500", "6000", "20000"), "images": ("2000", "6000", "20000")}
"""Rows of two audits, and the most bytes that a further row may take."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA caps memory on Linux only")
@pytest.mark.parametrize("kind", MORE)
def test_memory_is_capped_and_grows_little(kind):
    few, many, most = MORE[kind]
    command = [sys.executable, "-m", "faults.load", kind, "--rows", few, many, "--cap", "3"]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    done = subprocess.run(
        [*command, "--quiet", "--epochs", "3", "--loss", "gce"],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count('"every row once": true') == 2
    each = int(done.stdout.splitlines()[-1].split()[0])
    assert 0 < each < int(most), done.stdout
