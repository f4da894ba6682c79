"""A command in a fork of this process that goes on by itself, its words in a file."""

import contextlib
import http.client
import json
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

DECIDED = (3, 5, 7)


@dataclass
class Started:
    """A command under way.

    A review is spoken to: `acknowledged` counts the decisions it said are saved, then it is
    interrupted.
    """

    name: str
    pid: int
    words: Path
    began: float = field(default_factory=time.perf_counter)
    code: int | None = None
    acknowledged: int | None = None
    interrupted: float = 0.0

    @property
    def text(self) -> str:
        return self.words.read_text(encoding="utf-8", errors="replace")

    def look(self) -> bool:
        """Whether it has ended; speak to a review that listens."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            elif self.name == "review" and self.acknowledged is None and '"url"' in self.text:
                self._converse()
            elif self.acknowledged is not None and time.perf_counter() > self.interrupted + 5:
                self._interrupt()  # one went unheard in about 70 pairs; why is not known
        return self.code is not None

    def kill(self) -> None:
        """End it at once."""
        if not self.look():
            os.kill(self.pid, signal.SIGKILL)

    def _converse(self) -> None:
        line = next(line for line in self.text.splitlines() if '"url"' in line)
        place = urlsplit(json.loads(line)["url"])
        self.acknowledged = 0
        for row in DECIDED:
            entry = {"row": row, "sample_id": str(row), "decision": "confirm", "label": None}
            headers = {"Content-Type": "application/json"}
            with contextlib.suppress(OSError, http.client.HTTPException):
                talk = http.client.HTTPConnection("127.0.0.1", place.port, timeout=20)
                talk.request("POST", f"{place.path}api/decisions", json.dumps(entry), headers)
                self.acknowledged += talk.getresponse().status == 200
                talk.close()
        self._interrupt()

    def _interrupt(self) -> None:
        self.interrupted = time.perf_counter()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGINT)


def start(name: str, arguments: list[object], words: Path) -> Started:
    """Run `labelclean ARGUMENTS` in a fork; everything is imported there already."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        _in_child([str(one) for one in arguments], words)
    return Started(name, child, words)


def _in_child(arguments: list[str], words: Path) -> None:
    code = 70
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        with words.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        from labelclean.cli import cli

        try:
            cli.main(arguments, standalone_mode=True)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:  # the traceback is what the test is about
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def pause(seconds: float, *started: Started) -> None:
    """Wait while commands go on, speaking to reviews."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for one in started:
            one.look()
        time.sleep(0.005)


def wait_for(*started: Started, seconds: float = 120) -> None:
    """Wait until all have ended, speaking to reviews meanwhile."""
    until = time.monotonic() + seconds
    while sum(one.look() for one in started) < len(started):
        if time.monotonic() > until:
            for one in started:
                one.kill()
            names = ", ".join(f"{one.name}: {one.text[-500:]}" for one in started)
            raise TimeoutError(f"no end after {seconds} s: {names}")
        time.sleep(0.01)
