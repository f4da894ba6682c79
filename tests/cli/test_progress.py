"""A bar for people, silence for pipes."""

import io
import sys

import pytest

from labelclean.cli.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "quiet", "shown"),
    [(Terminal(), False, True), (Terminal(), True, False), (io.StringIO(), False, False)],
)
def test_a_bar_is_shown_to_people_only(monkeypatch, capsys, stream, quiet, shown):
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("reading images", quiet=quiet) as progress:
        for done in range(0, 101, 25):
            progress(done, 100)
    assert ("reading images" in stream.getvalue()) == shown
    assert capsys.readouterr().out == ""


def test_the_bar_reaches_its_total(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("reading images", quiet=False) as progress:
        progress(40, 100)
        progress(100, 100)
    assert "100/100" in stream.getvalue()
