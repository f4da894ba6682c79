"""Samples of the tables of faults: killed anywhere, no space, two at once, data that moves."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
SAMPLES = {
    "table": ("--kills", "20", "--failures", "20", "--quick", "--json"),
    "pairs": ("--pairs", "16", "--kills", "8"),
    "surroundings": ("--disks", "8", "--memories", "8", "--quick"),
    "moving": ("--changes", "10"),
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the trials are forks of one process")
@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_is_lost_mixed_or_half(name):
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    done = subprocess.run(
        [sys.executable, "-m", f"faults.{name}", *SAMPLES[name]],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    facts = json.loads(done.stdout)
    assert facts["bad"] == []
    if name == "table":
        assert facts["tried"] >= 40
        assert facts["kills"] >= 20
