"""Runs that end badly: interrupted, on a full disk, in a folder nobody may write to."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from labelclean import atomic
from planted import Planted, audit_probs, command, plant

pytestmark = pytest.mark.usefixtures("plain_figures")
LIMITED = """
import resource, runpy, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.argv = ["labelclean", *sys.argv[2:]]
runpy.run_module("labelclean", run_name="__main__")
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Planted:
    return plant(tmp_path_factory.mktemp("data"))


# A shell makes its background jobs deaf to Ctrl-C, and their children inherit it: hear it again.
HEARING = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("labelclean", run_name="__main__")
"""


def start(*arguments: object) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", HEARING, *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(process: subprocess.Popen[str], folder: Path, pattern: str) -> None:
    for _ in range(6000):
        if any(folder.glob(pattern)):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError(f"{folder / pattern} did not appear")


@pytest.mark.skipif(os.name != "posix", reason="SIGINT cannot be sent to one process on Windows")
def test_ctrl_c_ends_with_130_and_can_be_resumed(tmp_path):
    data = plant(tmp_path / "data", 120, 12)
    out = tmp_path / "run"
    flags = ("--features", data.features, "--loss", "gce", "--threads", 1, "--no-cache")
    flags = (*flags, "--epochs", 200, "--out", out)
    process = start("audit", data.table, *flags)
    # While it trains: a signal that comes while modules are imported may be lost by Python itself.
    wait_for(process, out / ".work", "epoch-*")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert "Traceback" not in said
    assert not (out / "run.json").exists()
    done = command("audit", data.table, *flags)
    assert done.exit_code == 2
    assert "--resume" in done.stderr
    assert command("export", out, tmp_path / "o.csv").exit_code == 3
    done = command("audit", data.table, *flags[:-4], "--epochs", 41, "--out", out, "--resume")
    assert done.exit_code == 2
    assert "training.epochs was 200, is 41" in done.stderr
    done = command("audit", data.table, *flags, "--resume")
    assert done.exit_code == 0, done.output
    assert not (out / ".work").exists()
    assert json.loads((out / "run.json").read_text())["epochs"] == 200
    done = command("audit", data.table, *flags, "--resume")
    assert done.exit_code == 0
    assert "nothing to resume" in done.stderr


@pytest.mark.parametrize("phase", ["observe", "judge", "write"])
def test_ctrl_c_in_any_phase(data, tmp_path, monkeypatch, phase):
    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    where = {
        "observe": "labelclean.workflows.from_probs.inspect",
        "judge": "labelclean.workflows.audit.judge_with_decisions",
        "write": "labelclean.outputs.run_folder.render_report",
    }
    flags = ("--pred-probs", data.probs, "--out", tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(where[phase], interrupt)
        done = command("audit", data.table, *flags)
    assert done.exit_code == 130
    assert not (tmp_path / "run" / "run.json").exists()
    assert not list((tmp_path / "run").glob("*.part"))
    done = command("audit", data.table, *flags, "--resume")
    assert done.exit_code == 0, done.output
    whole = audit_probs(data, tmp_path / "whole")
    for name in ("issues.parquet", "corrected.parquet"):
        assert (tmp_path / "run" / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="the size of files cannot be limited on Windows")
def test_a_disk_that_is_full(data, tmp_path):
    """A limit on the size of files stands in for a full disk: the write itself fails."""
    words = [sys.executable, "-c", LIMITED, "4000", "audit", str(data.table), "--pred-probs"]
    words += [str(data.probs), "--out", str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1, done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    left = [path.name for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert "run.json" not in left
    assert not [name for name in left if name.endswith(".part")]
    done = command("audit", data.table, "--pred-probs", data.probs, "--out", tmp_path / "run",
                   "--resume")  # fmt: skip
    assert done.exit_code == 0, done.output


def no_space(*_args: object) -> None:
    raise OSError(28, "No space left on device", "somewhere")


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.patch.jsonl"])
def test_an_export_that_fails_leaves_what_was_there(data, tmp_path, monkeypatch, name):
    run = audit_probs(data, tmp_path / "run")
    (tmp_path / name).write_text("before")
    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "fsync", no_space)
        done = command("export", run, tmp_path / name, "--overwrite")
    assert done.exit_code == 1
    assert "No space left" in done.stderr
    assert (tmp_path / name).read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "run"])


@pytest.mark.skipif(os.name != "posix", reason="folders have other permissions on Windows")
def test_a_folder_nobody_may_write_to(data, tmp_path):
    run = audit_probs(data, tmp_path / "run")
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    if os.access(locked, os.W_OK):
        pytest.skip("this user, root perhaps, may write to read-only folders")
    done = command("audit", data.table, "--pred-probs", data.probs, "--out", locked / "run")
    assert done.exit_code == 1
    assert "Permission denied" in done.stderr
    done = command("export", run, locked / "o.csv")
    assert done.exit_code == 1
    assert "Permission denied" in done.stderr


def test_a_folder_on_a_file(data, tmp_path):
    """A place that cannot be: stops also root, whom no permission stops."""
    (tmp_path / "file").write_text("x")
    done = command("audit", data.table, "--pred-probs", data.probs, "--out", tmp_path / "file/run")
    assert done.exit_code == 1
    assert "Not a directory" in done.stderr or "File exists" in done.stderr
    assert (tmp_path / "file").read_text() == "x"


def test_parquet_opens_elsewhere(data, tmp_path):
    run = audit_probs(data, tmp_path / "run")
    for name in ("issues.parquet", "corrected.parquet", "records.parquet"):
        assert len(pd.read_parquet(run / name)) == len(np.load(data.probs))


@pytest.mark.parametrize("library", ["polars", "duckdb", "datasets"])
def test_parquet_opens_in_other_libraries(data, tmp_path, library):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    path = str(audit_probs(data, tmp_path / "run") / "issues.parquet")
    if library == "polars":
        rows = module.read_parquet(path).height
    elif library == "duckdb":
        rows = module.sql(f"select count(*) from '{path}'").fetchone()[0]  # noqa: S608
    else:
        rows = module.load_dataset("parquet", data_files=path, cache_dir=str(tmp_path))["train"]
        rows = rows.num_rows
    assert rows == len(np.load(data.probs))
