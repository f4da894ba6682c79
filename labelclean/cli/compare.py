"""`labelclean compare`: losses side by side on the user's own data."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labelclean.cli.options import (
    Shared,
    data_settings,
    recipe_options,
    run_options,
    shared_options,
)

if TYPE_CHECKING:
    from labelclean.benchmark.papers.grid import Cell

_PLANTED = "symmetric:0.2"


@click.command("compare", short_help="Compare losses on your own data.")
@click.argument("manifest")
@click.option("--losses", required=True, metavar="L,...", help="For example cce,gce,imae:T=8.")
@click.option("--truth-col", metavar="C", help="Column of true labels, if there is one.")
@click.option(
    "--noise",
    metavar="KIND:RATE,...",
    default="",
    help=f"Errors to plant; default: {_PLANTED}, and none where --truth-col is given.",
)
@click.option("--seeds", default="0,1,2", show_default=True, metavar="N,...", help="One run each.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder; default: NAME-compare.")
@recipe_options
@shared_options
def command(
    *,
    manifest: str,
    losses: str,
    truth_col: str | None,
    noise: str,
    seeds: str,
    out: Path | None,
    recipe: str | None,
    overrides: tuple[str, ...],
    shared: Shared,
) -> None:
    """Train every loss on MANIFEST, once for each seed, and say how they differ.

    Without --truth-col the labels of MANIFEST are taken for the truth and known errors are planted
    among them: what is measured is how well each loss finds those, and how well it predicts rows
    that were set aside. What is finished stays in the folder, and a second call goes on with it.
    """
    from labelclean.benchmark.papers.comparison import compare_losses, describe_comparison
    from labelclean.benchmark.papers.grid import all_cells, listed, seeds_of
    from labelclean.benchmark.papers.run import Order, run_grid, settings_of
    from labelclean.benchmark.papers.store import Store
    from labelclean.benchmark.papers.study import open_study, own_columns
    from labelclean.recipe import load_recipe
    from labelclean.training.runtime import start_runtime

    settings = load_recipe(recipe, overrides)
    settings = replace(settings, data=data_settings(settings.data, shared))
    columns = own_columns(manifest, settings.data, truth_col, planted=bool(noise))
    noises = listed(noise) or ["given" if truth_col is not None else _PLANTED]
    order = Order(all_cells(listed(losses), noises, seeds_of(seeds)), settings)
    order.check()
    runtime = start_runtime(
        shared.device, threads=shared.threads, precision=settings.training.precision
    )
    study = open_study(manifest, settings.data, truth_col=columns.truth, labels=columns.labels)
    order.check_fit(study, runtime)
    store = Store(out or Path(f"{Path(manifest).stem or 'dataset'}-compare"))
    store.claim(settings_of(study, settings))
    options = run_options(shared)

    def tell(cell: "Cell", found: dict[str, float | None]) -> None:
        options.log(f"{cell.name}: {found['seconds']:.0f} s")

    run_grid(study, order, store, runtime, options, tell)
    wanted = set(order.cells)
    lines = compare_losses([entry for entry in store.everything() if entry[0] in wanted])
    facts = {
        "rows_trained": int(study.train.sum()),
        "rows_measured": int(study.evaluation.rows.sum()),
        "truth": study.source,
        "labels_taken_for_the_truth": truth_col is None,
        "losses": lines,
    }
    click.echo(json.dumps(facts, indent=2) if shared.as_json else describe_comparison(facts))
