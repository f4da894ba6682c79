"""Where a command computes and how it speaks, from the shared flags."""

import functools
from typing import TYPE_CHECKING

import click

from labelclean.cli.options import Shared
from labelclean.progress import progress_bar

if TYPE_CHECKING:
    from labelclean.workflows.observe import Place


def place_from(shared: Shared) -> "Place":
    """Give device, threads, cache, progress and messages as the flags ask for."""
    from labelclean.workflows.observe import Place

    return Place(
        device=shared.device,
        threads=shared.threads,
        cache=shared.cache_dir,
        no_cache=shared.no_cache,
        bar=functools.partial(progress_bar, shown=False if shared.quiet else None),
        say=lambda text: None if shared.quiet else click.echo(text, err=True),
    )
