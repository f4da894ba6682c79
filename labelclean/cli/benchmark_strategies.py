"""`labelclean benchmark strategies`: every loss and every strategy side by side."""

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
from labelclean.errors import ConfigError


@click.command("strategies", short_help="Train every loss and strategy on the same rows.")
@click.argument("manifest")
@click.option("--truth-col", required=True, metavar="C", help="Column with the true labels.")
@click.option(
    "--labels", "columns", required=True, multiple=True, metavar="C", help="Column; often."
)
@click.option(
    "--methods",
    metavar="L[@S],...",
    help="Like imae:T=8,cce@mixup; `=rate` stands for the true share of wrong labels.  [all]",
)
@click.option("--seeds", default="0", show_default=True, metavar="N,...", help="One run each.")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder; goes on with what it has.",
)
@recipe_options
@shared_options
def command(
    *,
    manifest: str,
    truth_col: str,
    columns: tuple[str, ...],
    methods: str | None,
    seeds: str,
    out: Path,
    recipe: str | None,
    overrides: tuple[str, ...],
    shared: Shared,
) -> None:
    """Train the network of the recipe by every method, on every column of labels of MANIFEST.

    Measured are the accuracy on rows of split `test`, against the truth, and how well 1 - p(given)
    ranks wrong labels (average precision). Of all methods those that cannot work with the network
    of the recipe are left out; set model.hidden for strategies with two networks. Every finished
    cell is kept in OUT/cells; a second call goes on where the first one ended.
    """
    from labelclean import __version__
    from labelclean.atomic import write_bytes
    from labelclean.benchmark.papers.grid import all_cells, listed, seeds_of
    from labelclean.benchmark.papers.store import Store
    from labelclean.benchmark.papers.table import TABLE, results_table
    from labelclean.benchmark.side_by_side import (
        SideBySide,
        all_methods,
        open_columns,
        refusal,
        side_table,
    )
    from labelclean.recipe import load_recipe
    from labelclean.training.runtime import start_runtime
    from labelclean.workflows.observe import feature_cache

    settings = load_recipe(recipe, overrides)
    settings = replace(settings, data=data_settings(settings.data, shared))
    names = listed(methods or "") or all_methods()
    cells = all_cells(names, columns, seeds_of(seeds))
    runtime = start_runtime(
        shared.device, threads=shared.threads, precision=settings.training.precision
    )
    options = run_options(shared)
    opened = {each.name: each for each in open_columns(manifest, settings, truth_col, columns)}
    faults = {}
    for cell in cells:
        reason = refusal(cell, settings, opened[cell.noise], runtime)
        if reason is not None:
            faults[cell.loss] = reason
    if faults and methods is not None:
        raise ConfigError("\n".join(faults.values()))
    for name, reason in faults.items():
        options.log(f"{name} is left out: {reason}")
    store, (first, *_) = Store(out), opened.values()
    plain = {key: value for key, value in settings.plain().items() if key != "loss"}
    facts = {"labelclean": __version__, "recipe": plain, "input": first.manifest.digest}
    store.claim(facts | {"truth": truth_col})
    with feature_cache(options, None) as cache:
        bench = SideBySide(list(opened.values()), settings, runtime, cache)
        for cell in cells:
            if cell.loss in faults or store.finished(cell) is not None:
                continue
            found = bench.measure(cell)
            store.add(cell, found)
            numbers = ", ".join(f"{key} {value:.3f}" for key, value in found.items() if value)
            options.log(f"{cell.name}: {numbers}")
    text = side_table(store.everything(), names, columns)
    write_bytes(store.folder / TABLE, text.encode())
    table = results_table(store.everything()).to_pylist()
    click.echo(json.dumps(table, indent=2) if shared.as_json else text)
