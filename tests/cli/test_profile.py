"""The table of `audit --profile`, and threads that wait without spinning."""

import os
import subprocess
import sys

from labelclean.cli import PATIENCE
from labelclean.cli.profile import profile_text
from labelclean.options import Clock


def test_the_table_has_a_line_for_every_phase():
    clock = Clock()
    clock.worked, clock.memory = {"read": 1.5}, {"read": 3 * 2**20}
    lines = profile_text({"decode": 0.0, "read": 2.0, "total": 4.0}, clock, 100).splitlines()
    assert lines[0].split() == ["phase", "seconds", "share", "cpu", "s", "rows/s", "peak", "MB"]
    assert lines[1].split() == ["decode", "0.00", "0.0%", "0.00", "-"]
    assert lines[2].split() == ["read", "2.00", "50.0%", "1.50", "50", "3"]
    assert lines[3].split() == ["total", "4.00", "100.0%", "1.50", "25"]


def test_waiting_threads_sleep_unless_somebody_said_otherwise():
    code = (
        "import atexit, sys, os\nfrom labelclean.cli import main\n"
        f"atexit.register(lambda: print(*(os.environ[name] for name in {list(PATIENCE)!r})))\n"
        "sys.argv = ['labelclean', '--version']\nmain()\n"
    )
    known = {name: value for name, value in os.environ.items() if name not in PATIENCE}
    said = {"KMP_BLOCKTIME": "7"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env=known | said,
    )  # fmt: skip
    expected = {**PATIENCE, **said}
    assert done.stdout.splitlines()[-1].split() == [expected[name] for name in PATIENCE]
