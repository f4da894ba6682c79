"""Two and three processes by torchrun over loopback: unequal shares, and one that is killed."""

import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from faults.ranks import ODD, audit_command, environment, write_digits
from labelclean.records.store import records_from_table

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> Path:
    return write_digits(tmp_path_factory.mktemp("data"))


def launch(manifest: Path, out: Path, processes: int, *flags: str, **fault: str):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={processes}",
           f"--master-port={port}"]  # fmt: skip
    return subprocess.run(
        [*run, *audit_command(manifest, out, *flags)],
        env=environment(**fault), capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize("processes", [2, 3])
def test_a_killed_process_ends_the_job_and_it_goes_on_to_the_same_result(
    digits, tmp_path, processes
):
    whole = tmp_path / "whole"
    done = launch(digits, whole, processes)
    assert done.returncode == 0, done.stderr[-2000:]
    for rank in range(processes):
        cut = tmp_path / f"cut{rank}"
        fault = {"FAULT_RANK": str(rank), "FAULT_EPOCH": "3"}
        died = launch(digits, cut, processes, **fault)
        assert died.returncode != 0
        assert "SIGKILL" in died.stderr
        assert not (cut / "run.json").exists()
        assert sorted(path.name for path in (cut / ".work").glob("epoch-*")) == ["epoch-00002"]
        done = launch(digits, cut, processes, "--resume")
        assert done.returncode == 0, done.stderr[-2000:]
        for name in ("records.parquet", "issues.parquet", "corrected.parquet"):
            assert (cut / name).read_bytes() == (whole / name).read_bytes(), (rank, name)


def test_three_processes_agree_with_one(digits, tmp_path):
    runs = []
    for processes in (1, 3):
        out = tmp_path / str(processes)
        done = launch(digits, out, processes)
        assert done.returncode == 0, done.stderr[-2000:]
        table = pq.read_table(out / "records.parquet")
        assert table["row"].to_pylist() == list(range(ODD))
        runs.append(records_from_table(table))
    assert np.isfinite(runs[1].p_given).all(), "each sample is recorded in every epoch"
    assert np.abs(runs[0].probs - runs[1].probs).max() < 1e-4
