"""`labelclean cache`: what the feature cache holds, and how to empty it."""

import json
import os
from pathlib import Path

import click

from labelclean.cli.options import output_options

_MEGABYTE = 2**20


@click.command("cache", short_help="Show or clear the cached features.")
@click.argument("what", type=click.Choice(["show", "clear"]), default="show")
@click.option(
    "--cache-dir", type=click.Path(path_type=Path), help="Folder of the cache; default: see above."
)
@output_options
def command(what: str, cache_dir: Path | None, as_json: bool, quiet: bool) -> None:
    """Show where the features of frozen backbones are kept and how large they are, or clear them.

    The folder is --cache-dir, else what the environment variable LABELCLEAN_CACHE names, else
    $XDG_CACHE_HOME/labelclean, else ~/.cache/labelclean. Clearing removes our own files only;
    features are computed again when they are needed.
    """
    from labelclean.options import cache_folder
    from labelclean.training.cache import cache_content, clear_cache

    folder = cache_folder(cache_dir)
    held = clear_cache(folder) if what == "clear" else cache_content(folder)
    facts = {
        "folder": str(folder),
        "chosen_by": _chosen_by(cache_dir),
        "backbones": held.backbones,
        "features": held.features,
        "bytes": held.size,
        "cleared": what == "clear",
    }
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    elif not quiet:
        done = "removed" if what == "clear" else "holds"
        click.echo(
            f"{folder} (chosen by {facts['chosen_by']})\n{done} {held.features} features of "
            f"{held.backbones} backbones and settings, {held.size / _MEGABYTE:.1f} MB"
        )


def _chosen_by(given: Path | None) -> str:
    if given is not None:
        return "--cache-dir"
    named = (name for name in ("LABELCLEAN_CACHE", "XDG_CACHE_HOME") if os.environ.get(name))
    return next(named, "default")
