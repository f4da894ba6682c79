"""Run a command in a fork of this process, with a trap set."""

import contextlib
import io
import os
import pickle
import resource
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


def run(
    arguments: list[str], root: Path, at: int = -1, what: str = KILL, spare: int | None = None
) -> End:
    """Run `labelclean ARGUMENTS` in a fork; the trap goes off at operation `at`, -1: never.

    Forked from a process that has everything imported, so that hundreds of runs take minutes. With
    `spare` it may take only so many bytes of memory beyond those of that process.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _in_child(arguments, Trap(root, at, what), writer, spare)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return End(-os.WTERMSIG(status), "", at, [])
    text, steps, log = pickle.loads(answer)  # noqa: S301 (from our own child, through a pipe)
    return End(os.WEXITSTATUS(status), text, steps, log)


def _limit(spare: int | None) -> None:
    """Let this process take only so much memory more; None: as much as there is."""
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if spare is not None:
        taken = next(
            int(line.split()[1]) * 1024
            for line in Path("/proc/self/status").read_text().splitlines()
            if line.startswith("VmData")
        )
        spare += taken
    resource.setrlimit(resource.RLIMIT_DATA, (most if spare is None else spare, most))


def _in_child(arguments: list[str], trap: Trap, writer: int, spare: int | None) -> None:
    code = 70
    said = io.StringIO()
    try:
        from labelclean.cli import cli

        trap.spring()
        _limit(spare)
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                cli.main(arguments, standalone_mode=True)
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            except BaseException:  # the traceback is what the test is about
                said.write(traceback.format_exc())
        _limit(None)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(pickle.dumps((said.getvalue(), trap.count, trap.log)))
    finally:
        os._exit(code)
