"""`labelclean demo`: a small real data set with planted errors."""

import json
from pathlib import Path

import click

from labelclean.cli.options import Shared, shared_options


@click.command("demo")
@click.argument(
    "folder", metavar="[DIR]", type=click.Path(path_type=Path), default="labelclean-demo"
)
@click.option("--data-only", is_flag=True, help="Write the data and stop.")
@click.option("--overwrite", is_flag=True, help="Replace the demo's files in DIR.")
@shared_options
def command(*, folder: Path, data_only: bool, overwrite: bool, shared: Shared) -> None:
    """Write 1,797 handwritten digits with 10 % wrong labels to DIR.

    DIR (default: labelclean-demo) gets the pictures, dataset.csv with the wrong labels among the
    right ones, and truth.csv with the column true_label.
    """
    from labelclean.data.demo import write_demo

    demo = write_demo(folder, seed=shared.seed, overwrite=overwrite)
    if shared.as_json:
        result = {
            "dataset": demo.dataset.as_posix(),
            "truth": demo.truth.as_posix(),
            "rows": demo.rows,
            "planted_errors": demo.planted,
            "seed": shared.seed,
        }
        click.echo(json.dumps(result))
    else:
        click.echo(
            f"{demo.folder}: {demo.rows} handwritten digits, {demo.planted} of their labels made "
            f"wrong ({demo.planted / demo.rows:.1%})"
        )
    if not (data_only or shared.quiet):
        click.echo(f"Next: labelclean check {demo.dataset}", err=True)
