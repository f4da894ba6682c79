"""`labelclean benchmark scan`: the pre-scan beside a plain loop over the same work."""

import json
from dataclasses import asdict
from statistics import median

import click

from labelclean.cli.options import Shared, data_settings, shared_options


@click.command(short_help="Time the pre-scan beside a plain loop.")
@click.argument("manifest")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@shared_options
def command(manifest: str, rounds: int, shared: Shared) -> None:
    """Read every image of MANIFEST by a plain loop and by the pre-scan, several times."""
    from labelclean.benchmark.scan import compare_scan
    from labelclean.data.read import read_manifest
    from labelclean.data.sources import open_source
    from labelclean.recipe import load_recipe

    settings = data_settings(load_recipe().data, shared)
    table = read_manifest(
        manifest,
        image_col=settings.image_col,
        label_col=settings.label_col,
        image_root=settings.image_root,
        allow_outside_root=settings.allow_outside_root,
        limit=settings.limit,
    )
    found = compare_scan(open_source(table), settings.workers, rounds)
    if shared.as_json:
        click.echo(json.dumps([{**asdict(one), "ratio": one.ratio} for one in found], indent=2))
        return
    click.echo(f"{len(table)} images, images per second")
    click.echo(f"{'loop':>8} {'scan':>8} {'ratio':>6}")
    for one in found:
        click.echo(f"{one.loop:8.0f} {one.scan:8.0f} {one.ratio:6.2f}")
    click.echo(f"median ratio {median(one.ratio for one in found):.2f}")
