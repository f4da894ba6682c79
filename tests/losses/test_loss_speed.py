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
    best: dict[str, float] = {}
    limit: dict[str, float] = {}
    for _ in range(3):  # other work on the machine only ever adds to a ratio
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        for row in json.loads(done.stdout):
            limit[row["name"]] = row["limit"]
            best[row["name"]] = min(row["ratio"], best.get(row["name"], row["ratio"]))
        # Where caches hold all logits, torch's one kernel gains more than anything made of several,
        # whatever we do; our plain cross entropy shows by how much.
        handicap = max(1.0, best["cce"])
        slow = {name: ratio for name, ratio in best.items() if ratio > handicap * limit[name]}
        if not slow:
            break
    assert len(best) > 20
    assert slow == {}
