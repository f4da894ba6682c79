"""`labelclean benchmark papers`: the papers' experiments on data whose truth is known."""

import json
from dataclasses import replace
from pathlib import Path

import click

from labelclean.cli.options import (
    Shared,
    data_settings,
    recipe_options,
    run_options,
    shared_options,
)


@click.command("papers", short_help="Repeat the papers' experiments: losses x noise x seeds.")
@click.argument("manifest")
@click.option("--truth-col", metavar="C", help="True labels; else rows of `verified` are true.")
@click.option(
    "--losses", metavar="L,...", help="Like cce,imae:T=8,cce@mixup:alpha=16; else the recipe's own."
)
@click.option("--noise", metavar="KIND:RATE,...", default="", help="For example symmetric:0.4.")
@click.option("--labels", metavar="C", help="A column of labels that are noisy as they are.")
@click.option("--seeds", default="0", show_default=True, metavar="N,...", help="One run each.")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder; goes on with what it has.",
)
@click.option("--train-rows", type=click.IntRange(min=2), help="Train on the first N such rows.")
@click.option("--test-rows", type=click.IntRange(min=1), help="Measure on the first N such rows.")
@click.option("--retrain", is_flag=True, help="Train anew on the corrected labels, too.")
@click.option(
    "--against",
    multiple=True,
    type=click.Choice(["cleanlab", "knn", "aum"]),
    help="Let this judge the same features or margins; may be repeated.",
)
@click.option("--figures", is_flag=True, help="Draw the papers' figures into OUT/figures.")
@recipe_options
@shared_options
def command(
    *,
    manifest: str,
    truth_col: str | None,
    losses: str | None,
    noise: str,
    labels: str | None,
    seeds: str,
    out: Path,
    train_rows: int | None,
    test_rows: int | None,
    retrain: bool,
    against: tuple[str, ...],
    figures: bool,
    recipe: str | None,
    overrides: tuple[str, ...],
    shared: Shared,
) -> None:
    """Train every loss under every noise and seed on MANIFEST and measure what the papers measure.

    Behind @ stands a strategy to train a loss by. Every finished cell is kept in OUT/cells; a
    second call goes on where the first one ended, and several calls may fill one folder with
    different cells.
    """
    from labelclean.benchmark.papers.figures import draw_figures
    from labelclean.benchmark.papers.grid import Cell, all_cells, listed, seeds_of
    from labelclean.benchmark.papers.run import Order, run_grid, settings_of
    from labelclean.benchmark.papers.store import Store
    from labelclean.benchmark.papers.study import given_only, open_study
    from labelclean.benchmark.papers.table import results_table, write_result_tables
    from labelclean.recipe import load_recipe
    from labelclean.training.runtime import start_runtime

    settings = load_recipe(recipe, overrides)
    settings = replace(settings, data=data_settings(settings.data, shared))
    names = listed(losses or "") or [settings.loss.name]
    cells = all_cells(names, given_only(labels, listed(noise)), seeds_of(seeds))
    order = Order(cells, settings, retrain, against)
    order.check()
    runtime = start_runtime(
        shared.device, threads=shared.threads, precision=settings.training.precision
    )
    study = open_study(
        manifest,
        settings.data,
        truth_col=truth_col,
        labels=labels,
        train_rows=train_rows,
        test_rows=test_rows,
    )
    order.check_fit(study, runtime)
    store = Store(out)
    store.claim(settings_of(study, settings))

    def tell(cell: Cell, found: dict[str, float | None]) -> None:
        if not shared.quiet:
            numbers = ", ".join(
                f"{name} {value:.3f}"
                for name in ("best_accuracy", "final_accuracy", "retrain_final_accuracy", "seconds")
                if (value := found.get(name)) is not None
            )
            click.echo(f"{cell.name}: {numbers}", err=True)

    options = run_options(shared)
    run_grid(study, order, store, runtime, options, tell)
    text = write_result_tables(store)
    for path in draw_figures(store, study.manifest.classes) if figures else ():
        options.log(f"wrote {path}")
    table = results_table(store.everything()).to_pylist()
    click.echo(json.dumps(table, indent=2) if shared.as_json else text)
