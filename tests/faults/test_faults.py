"""A sample of the table of faults: killed anywhere, out of space anywhere, nothing is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the trials are forks of one process")
def test_twenty_kills_and_twenty_failing_writes():
    command = [sys.executable, "-m", "faults.table", "--kills", "20", "--failures", "20"]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    done = subprocess.run(
        [*command, "--quick", "--json"],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    facts = json.loads(done.stdout)
    assert facts["tried"] >= 40
    assert facts["kills"] >= 20
    assert facts["bad"] == []
