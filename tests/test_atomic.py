"""One writer at a time: refused with a name, queued on request, free again however it ended."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labelclean.atomic import folder_lock, one_writer, target_lock
from labelclean.errors import OutputError

HOLD = """
import sys, time
from pathlib import Path
from labelclean.atomic import one_writer
with one_writer(Path(sys.argv[1]), "report"):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(lock: Path) -> subprocess.Popen:
    """Start a process that holds a lock."""
    root = str(Path(__file__).resolve().parents[1])
    paths = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, "-c", HOLD, str(lock)]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}
    )
    assert process.stdout.readline().strip() == b"held"
    return process


def test_the_second_comer_is_told_who_writes_and_since_when(tmp_path):
    lock = folder_lock(tmp_path)
    process = holder(lock)
    try:
        since = r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00"
        words = rf"{re.escape(str(tmp_path))} is in use: `labelclean report` \(process "
        with pytest.raises(OutputError, match=rf"{words}{process.pid} on .*, {since}\)"):
            one_writer(lock, "audit").__enter__()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_killed_holder_leaves_no_stale_lock(tmp_path):
    lock = target_lock(tmp_path / "table.csv")
    process = holder(lock)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert lock.exists()
    with one_writer(lock, "export"):
        assert json.loads(lock.read_bytes())["process"] == os.getpid()
    assert not lock.exists()


def test_who_waits_comes_next(tmp_path):
    lock, told, order = folder_lock(tmp_path / "run"), [], []

    def second() -> None:
        with one_writer(lock, "retrain", wait=told.append):
            order.append("second")

    with ThreadPoolExecutor(1) as pool:
        with one_writer(lock, "audit"):
            waiting = pool.submit(second)
            while not told:
                time.sleep(0.01)
            order.append("first")
        waiting.result(timeout=60)
    assert order == ["first", "second"]
    assert len(told) == 1
    assert "`labelclean audit` (process" in told[0]


def test_a_command_may_call_another_and_a_thread_may_not(tmp_path):
    lock = folder_lock(tmp_path)

    def another() -> str:
        try:
            with one_writer(lock, "report"):
                return "both"
        except OutputError as error:
            return str(error)

    with one_writer(lock, "audit"), one_writer(lock, "retrain"):
        with ThreadPoolExecutor(1) as pool:
            assert "is in use: `labelclean audit`" in pool.submit(another).result()
        with pytest.raises(OutputError, match="in use"):
            one_writer(lock, "review", alone=True).__enter__()
    assert not lock.exists()


def test_many_at_once_never_write_together(tmp_path):
    """Lock files come and go under those who wait for them."""
    lock, inside, most = folder_lock(tmp_path / "a/b"), [], []

    def write(_: int) -> None:
        for _ in range(20):
            with one_writer(lock, "report", wait=lambda _: None):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(most) == 80
    assert set(most) == {1}
    assert not lock.exists()


def test_what_was_made_beside_the_lock_stays(tmp_path):
    with one_writer(folder_lock(tmp_path / "run"), "audit"):
        (tmp_path / "run/issues.parquet").touch()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["issues.parquet"]
    with one_writer(folder_lock(tmp_path / "a/b"), "audit"):
        assert (tmp_path / "a/b").is_dir()
    assert not (tmp_path / "a").exists(), "folders that were made for the lock alone are gone"
