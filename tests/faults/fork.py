"""Run a command in a fork of this process, with a trap set."""

import contextlib
import io
import os
import pickle
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

from faults.trap import KILL, Trap

KILLED = -9


@dataclass(frozen=True)
class End:
    """How a process ended."""

    code: int
    text: str
    steps: int
    log: list[str]


def run(arguments: list[str], root: Path, at: int = -1, what: str = KILL) -> End:
    """Run `labelclean ARGUMENTS` in a fork; the trap goes off at operation `at`, -1: never.

    Forked from a process that has everything imported, so that hundreds of runs take minutes.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _in_child(arguments, Trap(root, at, what), writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return End(-os.WTERMSIG(status), "", at, [])
    text, steps, log = pickle.loads(answer)  # noqa: S301 (from our own child, through a pipe)
    return End(os.WEXITSTATUS(status), text, steps, log)


def _in_child(arguments: list[str], trap: Trap, writer: int) -> None:
    code = 70
    said = io.StringIO()
    try:
        from labelclean.cli import cli

        trap.spring()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                cli.main(arguments, standalone_mode=True)
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            except BaseException:  # the traceback is what the test is about
                said.write(traceback.format_exc())
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(pickle.dumps((said.getvalue(), trap.count, trap.log)))
    finally:
        os._exit(code)
