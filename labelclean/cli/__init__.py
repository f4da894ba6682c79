"""The command line: one file per command, loaded when it is called."""

import importlib
import os
import sys
import traceback
import warnings
from typing import NoReturn

import click

from labelclean import __version__
from labelclean.catalogue import nearest_name
from labelclean.errors import LabelCleanError

COMMANDS = (
    "check",
    "audit",
    "review",
    "report",
    "export",
    "retrain",
    "predict",
    "inject",
    "demo",
    "losses",
    "benchmark",
)
DEBUG = "labelclean.debug"
INTERRUPTED = 130


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
        try:
            with warnings.catch_warnings():
                # What Pillow mutters about metadata is no news; what it cannot decode is reported.
                warnings.filterwarnings("ignore", module=r"PIL\.")
                return super().invoke(ctx)
        except LabelCleanError as error:
            _fail(ctx, str(error), error.exit_code)
        except BrokenPipeError:
            # The reader of our output has gone (`labelclean check x | head`): stop without noise,
            # also at interpreter exit, where Python would flush stdout once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(1)
        except OSError as error:
            _fail(ctx, _os_message(error), 1)
        except MemoryError as error:
            _fail(ctx, f"out of memory ({error}). Free some, or audit fewer rows (--limit).", 1)
        except KeyboardInterrupt:
            _fail(ctx, "interrupted", INTERRUPTED)


def _fail(ctx: click.Context, message: str, code: int) -> NoReturn:
    if ctx.meta.get(DEBUG):
        traceback.print_exc()
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
    cli()
