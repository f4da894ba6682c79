"""Two real processes that train as one, by every strategy."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from strategy_tasks import NAMES

TESTS = Path(__file__).resolve().parents[1]


def probabilities(target: Path, processes: int) -> dict[str, np.ndarray]:
    script = [str(TESTS / "strategy_processes.py"), str(target)]
    if processes > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        count = f"--nproc-per-node={processes}"
        script = ["-m", "torch.distributed.run", count, f"--master-port={port}", *script]
    path = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with np.load(target, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


@pytest.mark.slow
def test_two_processes_train_as_one(tmp_path):
    one, two = (probabilities(tmp_path / f"{count}.npz", count) for count in (1, 2))
    assert set(one) == set(NAMES)
    for name in NAMES:
        assert np.abs(one[name] - two[name]).max() < 1e-4, name
