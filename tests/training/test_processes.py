"""Real processes: two that train as one, and some that are killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr
from sklearn.datasets import load_digits

from labelclean.records.store import records_from_table

ROOT = Path(__file__).resolve().parents[2]
ODD = 203


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    table = load_digits(n_class=4)
    label = table.target[:ODD].copy()
    label[:20] = (label[:20] + 1) % 4
    path = tmp_path_factory.mktemp("data") / "digits.npz"
    np.savez(path, X=(table.images[:ODD] * 15.9).astype(np.uint8), y=label)
    return path


def command(manifest: Path, out: Path, *flags: str, processes: int = 1) -> list[str]:
    launch = [sys.executable]
    if processes > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        count = f"--nproc-per-node={processes}"
        launch += ["-m", "torch.distributed.run", count, f"--master-port={port}"]
    rest = ["-m", "labelclean", "audit", str(manifest), "--out", str(out), "--device", "cpu"]
    return [*launch, *rest, "--set", "model.image_size=32", "--quiet", *flags]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def finish(arguments: list[str]) -> None:
    done = subprocess.run(arguments, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["imae", "nal"])
def test_two_processes_give_the_records_of_one(pictures, tmp_path, loss):
    one, two = tmp_path / "one", tmp_path / "two"
    flags = ("--loss", loss, "--threads", "1")
    finish(command(pictures, one, *flags, "--cache-dir", str(tmp_path / "a")))
    finish(command(pictures, two, *flags, "--cache-dir", str(tmp_path / "b"), processes=2))
    first, second = (
        records_from_table(pq.read_table(out / "records.parquet")) for out in (one, two)
    )
    assert pq.read_table(two / "records.parquet")["row"].to_pylist() == list(range(ODD))
    assert np.isfinite(second.p_given).all(), "each sample is recorded in every epoch"
    assert np.abs(first.probs - second.probs).max() < 1e-4
    assert np.abs(first.p_given - second.p_given).max() < 1e-4
    if first.target is not None:
        assert np.abs(first.target - second.target).max() < 1e-4
    ranks = [pd.read_parquet(out / "issues.parquet").set_index("row")["rank"] for out in (one, two)]
    assert spearmanr(ranks[0], ranks[1].reindex(ranks[0].index)).statistic > 0.999
    facts = json.loads((two / "run.json").read_text())
    assert facts["machine"]["processes"] == 2
    shards = list((tmp_path / "b").glob("*/*.npy"))
    assert len(shards) == 2, "each process extracted its share"
    assert sum(len(np.load(path)) for path in shards) == len(
        np.load(next((tmp_path / "a").glob("*/*.npy")))
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["head", "scratch"])
def test_killed_runs_end_with_the_same_bytes(pictures, tmp_path, mode):
    flags = ["--loss", "nal", "--mode", mode, "--threads", "1", "--epochs", "40"]
    if mode == "scratch":
        flags += ["--backbone", "resnet20", "--set", "training.batch_size=32", "--epochs", "6"]
    whole = tmp_path / "whole"
    began = time.perf_counter()
    finish(command(pictures, whole, *flags, "--no-cache"))
    length = time.perf_counter() - began
    cut = tmp_path / "cut"
    draws = np.random.default_rng(0).uniform(0.2, 1.0, 10)
    interrupted = 0
    for share in draws:
        resume = ["--resume"] if cut.exists() else []
        run = subprocess.Popen(
            command(pictures, cut, *flags, "--no-cache", *resume),
            env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            run.wait(timeout=share * length)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            interrupted += 1
        run.wait()
        if (cut / "run.json").is_file():
            break
    assert interrupted > 0
    finish(command(pictures, cut, *flags, "--no-cache", "--resume"))
    for name in ("records.parquet", "issues.parquet"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()
