"""A bar for people, silence for pipes."""

import io
import sys

import pytest

from labelclean.options import progress_bar


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
