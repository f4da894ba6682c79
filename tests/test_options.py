"""A bar for people, silence for pipes; a clock that counts every second once; cores."""

import contextlib
import io
import math
import os
import sys
import time

import pytest

from labelclean import options
from labelclean.options import Clock, cores_allowed, no_progress, progress_bar, usable_cores


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "shown", "seen"),
    [
        (Terminal(), None, True),
        (Terminal(), False, False),
        (io.StringIO(), None, False),
        (io.StringIO(), True, True),
    ],
)
def test_a_bar_is_shown_to_people_and_to_those_who_ask(monkeypatch, capsys, stream, shown, seen):
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("reading images", shown=shown) as progress:
        for done in range(0, 101, 25):
            progress(done, 100)
    assert ("reading images" in stream.getvalue()) == seen
    assert capsys.readouterr().out == ""


def test_the_bar_reaches_its_total(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("reading images", shown=None) as progress:
        progress(40, 100)
        progress(100, 100)
    assert "100/100" in stream.getvalue()


@pytest.fixture
def hands(monkeypatch):
    """Turn the hands of the clock by hand."""
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def turn(seconds):
        now[0] += seconds

    return turn


def test_a_phase_inside_another_stops_its_clock(hands):
    clock = Clock()
    with clock.phase("write"):
        hands(2)
        with clock.phase("report"):
            hands(5)
        hands(1)
    with clock.phase("report"):
        hands(0.5)
    assert clock.timings() == {"write": 3.0, "report": 5.5, "total": 8.5}
    assert set(clock.memory) == {"write", "report"}


def test_what_is_over_when_the_clock_is_made_was_imports(hands):
    hands(3)
    clock = Clock(began=100.0)
    hands(1)  # in no phase
    assert clock.timings() == {"import": 3.0, "total": 4.0}


def test_a_phase_that_fails_is_counted_too(hands):
    clock = Clock()
    with contextlib.suppress(ValueError), clock.phase("read"):
        hands(2)
        raise ValueError
    with clock.timed(no_progress)("decode"):
        hands(1)
    assert clock.timings() == {"read": 2.0, "decode": 1.0, "total": 3.0}


def test_a_container_says_how_many_cores_it_gives(tmp_path, monkeypatch):
    assert cores_allowed(tmp_path) == math.inf
    for text, cores in (("150000 100000", 1.5), ("max 100000", math.inf), ("damaged", math.inf)):
        (tmp_path / "cpu.max").write_text(text)
        assert cores_allowed(tmp_path) == cores
    older = tmp_path / "older" / "cpu"
    older.mkdir(parents=True)
    for quota, cores in (("50000", 0.5), ("-1", math.inf)):
        (older / "cpu.cfs_quota_us").write_text(quota)
        (older / "cpu.cfs_period_us").write_text("100000")
        assert cores_allowed(older.parent) == cores
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for quota, expected in ((0.5, 1), (1e9, here), (math.inf, here)):
        monkeypatch.setattr(options, "cores_allowed", lambda _, quota=quota: quota)
        assert usable_cores() == expected
