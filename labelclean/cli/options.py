"""Flags that every data command shares, handed to the command as one value."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labelclean.cli import DEBUG
from labelclean.data.settings import DataSettings
from labelclean.options import Log, RunOptions, progress_bar

if TYPE_CHECKING:
    from labelclean.data.places import Place


@dataclass(frozen=True, slots=True)
class Shared:
    """The shared flags as given; None where the user said nothing."""

    image_col: str | None
    label_col: str | None
    image_root: str | None
    allow_outside_root: bool
    limit: int | None
    budget: float | None
    workers: int | None
    threads: int | None
    device: str
    seed: int
    cache_dir: Path | None
    no_cache: bool
    as_json: bool
    quiet: bool


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[DEBUG] = True


budget_option = click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="X",
    help="Read tables that claim up to X times the usual limits of rows, columns and bytes.",
)
_OUTPUT = (
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    click.option("--quiet", is_flag=True, help="No progress, no messages but errors."),
    click.option(
        "--debug",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_remember_debug,
        help="Show the traceback of an error.",
    ),
)
_FLAGS = (
    click.option("--image-col", help="Column with the image path or bytes."),
    click.option("--label-col", help="Column with the label."),
    click.option(
        "--image-root",
        metavar="FOLDER|URL",
        help="Folder relative paths start from; default: the manifest's own folder.",
    ),
    click.option("--allow-outside-root", is_flag=True, help="Accept paths that leave that folder."),
    click.option(
        "--limit",
        type=click.IntRange(min=1),
        help="Read only N rows: the first ones, or an even part of rows sorted by class.",
    ),
    budget_option,
    click.option(
        "--workers", type=click.IntRange(min=0), help="Processes that decode images; 0: none."
    ),
    click.option("--threads", type=click.IntRange(min=1), help="Threads for the arithmetic."),
    click.option(
        "--device",
        type=click.Choice(["auto", "cpu", "cuda", "mps"]),
        default="auto",
        show_default=True,
        help="Where to compute.",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of every draw."),
    click.option("--cache-dir", type=click.Path(path_type=Path), help="Folder of the cache."),
    click.option("--no-cache", is_flag=True, help="Neither read nor write the cache."),
    *_OUTPUT,
)


def shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the shared flags to a command, which receives them as its keyword `shared`."""
    names = [field.name for field in fields(Shared)]

    @functools.wraps(command)
    def packed(**kwargs: object) -> None:
        flags = {name: kwargs.pop(name) for name in names}
        command(shared=Shared(**flags), **kwargs)  # type: ignore[arg-type]

    decorated: Callable[..., None] = packed
    for flag in reversed(_FLAGS):
        decorated = flag(decorated)
    return decorated


def output_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --json, --quiet and --debug to a command that reads a run rather than data."""
    for flag in reversed(_OUTPUT):
        command = flag(command)
    return command


def wait_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add --wait to a command that writes where others may write, too."""
    flag = click.option(
        "--wait", is_flag=True, help="Where another command is writing, wait for it to end."
    )
    return flag(command)


def queue(wait: bool) -> Log | None:
    """Give what --wait asks for: who is told for whom we wait, or None."""
    return functools.partial(click.echo, err=True) if wait else None


def hold_target(target: "Place", what: str, wait: bool) -> None:
    """Keep others from writing a command's target until the command ends; stores know no locks."""
    from labelclean.atomic import one_writer, target_lock

    if not isinstance(target, Path):
        return
    lock = one_writer(target_lock(target), what, wait=queue(wait))
    click.get_current_context().with_resource(lock)


def recipe_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --recipe and --set; the command receives them as `recipe` and `overrides`."""
    recipe = click.option("--recipe", metavar="NAME|FILE", help="A shipped recipe or a .toml file.")
    override = click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        help="Change one setting of the recipe; may be repeated.",
    )
    return recipe(override(command))


def data_settings(settings: DataSettings, shared: Shared) -> DataSettings:
    """Put the shared flags that were given over the [data] section of a recipe."""
    given = {
        "image_col": shared.image_col,
        "label_col": shared.label_col,
        "image_root": shared.image_root,
        "allow_outside_root": shared.allow_outside_root or None,
        "limit": shared.limit,
        "budget": shared.budget,
        "workers": shared.workers,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    return replace(settings, **changes)  # type: ignore[arg-type]


def run_options(shared: Shared, *, wait: bool = False) -> RunOptions:
    """Give device, threads, cache, queueing, progress and messages as the flags ask for."""
    return RunOptions(
        device=shared.device,
        threads=shared.threads,
        cache=shared.cache_dir,
        no_cache=shared.no_cache,
        wait=wait,
        progress=functools.partial(progress_bar, shown=False if shared.quiet else None),
        log=lambda text: None if shared.quiet else click.echo(text, err=True),
    )
