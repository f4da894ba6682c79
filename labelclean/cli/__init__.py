"""The command line: one file per command, loaded when it is called."""

import atexit
import contextlib
import importlib
import json
import os
import sys
import threading
import time
import traceback
import warnings
from functools import partial
from typing import NoReturn

import click

from labelclean import __version__
from labelclean.catalogue import nearest_name
from labelclean.errors import LabelCleanError

STARTED = time.perf_counter()
"""When the program began, but for the little that comes before this line."""
COMMANDS = (
    "check",
    "audit",
    "worker",
    "review",
    "report",
    "verify",
    "export",
    "apply",
    "retrain",
    "predict",
    "inject",
    "demo",
    "losses",
    "strategies",
    "cache",
    "compare",
    "benchmark",
)
DEBUG, ANSWERED = "labelclean.debug", "labelclean.answered"
"""What commands leave for whoever ends them: show a traceback; JSON is printed already."""
INTERRUPTED = 130
PATIENCE = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0", "OPENBLAS_THREAD_TIMEOUT": "4"}
"""Threads of torch and numpy that wait for each other sleep instead of spinning: where other work
wants the cores, those that spin keep the very thread from running that they wait for. The libraries
look at these variables when they are loaded."""
_NO_ROOM = (
    "can't allocate memory", "cannot allocate memory", "out of memory", "bad_alloc",
    "failed to map segment", "can't start new thread", "without exception set",
)  # fmt: skip
_GOES_ON = {
    "worker": " The same command goes on with the shards that are left.",
    "audit": " The same command with --resume (and without --overwrite) goes on with it.",
    "benchmark": " The same command goes on with the cells that are left.",
    "compare": " The same command goes on with the losses that are left.",
}


class Commands(click.Group):
    """A group that imports a command's module only when the command is looked up."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order people use them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; an unknown name is answered with the nearest one."""
        if cmd_name not in COMMANDS:
            ctx.fail(f"no such command {cmd_name!r}.{nearest_name(cmd_name, COMMANDS)}")
        module = importlib.import_module(f"labelclean.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; errors we raise on purpose become one message and their exit code."""
        # The words themselves: a command line that cannot be parsed is answered in JSON, too.
        as_json = "--json" in ctx.args
        fail = partial(_fail, ctx, as_json=as_json)
        try:
            with warnings.catch_warnings():
                # What Pillow mutters about metadata is no news; what it cannot decode is reported.
                warnings.filterwarnings("ignore", module=r"PIL\.")
                return super().invoke(ctx)
        except LabelCleanError as error:
            fail(type(error).__name__, str(error), error.exit_code)
        except click.UsageError as error:
            if as_json:
                click.echo(_error_json("UsageError", error.format_message(), error.exit_code))
            raise
        except BrokenPipeError:
            # The reader of our output has gone (`labelclean check x | head`): stop without noise,
            # also at interpreter exit, where Python would flush stdout once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(1)
        except OSError as error:
            fail(type(error).__name__, _os_message(error), 1)
        except (MemoryError, RuntimeError, ImportError, SystemError) as error:
            if not _out_of_memory(error):
                raise
            why = (str(error).strip().splitlines() or ["no room"])[0][:200]
            text = f"out of memory ({why}). Free some, or audit fewer rows (--limit)."
            fail("MemoryError", text, 1)
        except KeyboardInterrupt:
            hint = _GOES_ON.get(ctx.invoked_subcommand or "", "")
            fail("KeyboardInterrupt", f"interrupted.{hint}", INTERRUPTED)


def _out_of_memory(error: Exception) -> bool:
    """Tell by its words: torch, the loader of libraries and Python's own import say it so."""
    words = str(error).lower()
    return isinstance(error, MemoryError) or any(sign in words for sign in _NO_ROOM)


def _error_json(kind: str, message: str, code: int) -> str:
    return json.dumps({"error": {"kind": kind, "message": message, "exit_code": code}}, indent=2)


def _fail(ctx: click.Context, kind: str, message: str, code: int, *, as_json: bool) -> NoReturn:
    if ctx.meta.get(DEBUG):
        traceback.print_exc()
    if as_json and not ctx.meta.get(ANSWERED):
        click.echo(_error_json(kind, message, code))
    click.echo(f"Error: {message}", err=True)
    ctx.exit(code)


def _os_message(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}. Check the disk and its permissions, then try again."


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="labelclean")
def cli() -> None:
    """Find and repair wrong labels in image data sets.

    Start with `labelclean check dataset.csv`.
    """


def main() -> None:
    """Run the command line; the console script's door."""
    for name, value in PATIENCE.items():
        os.environ.setdefault(name, value)
    try:
        cli(obj=STARTED)
    except SystemExit as end:
        _leave(end.code if isinstance(end.code, int) else int(end.code is not None))


def _leave(code: int) -> NoReturn:
    """End the process when all of ours is done, without taking the interpreter apart.

    A thread of Arrow that still holds a Python object and wakes meanwhile aborts the process: one
    in ten short commands on a busy machine ended so, with code 134 instead of its own.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads any more
            stream.flush()
    os._exit(code)
