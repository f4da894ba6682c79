"""The promised speed, by the command that prints it, in a process of its own."""

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_every_loss_keeps_its_promised_speed():
    # A fresh process: other tests tune this one's memory allocator. Many rounds: less noise.
    words = [sys.executable, "-m", "labelclean", "benchmark", "losses"]
    words += ["--json", "--threads", "1", "--rounds", "40"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)
    assert len(rows) > 20
    assert {row["name"]: row["ratio"] for row in rows if row["ratio"] > row["limit"]} == {}
