"""`labelclean benchmark anomalies`: outliers, duplicates and leaks where they were planted."""

import json
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import click

from labelclean.cli.options import (
    Shared,
    data_settings,
    recipe_options,
    run_options,
    shared_options,
)


@click.command("anomalies", short_help="Score outliers, duplicates and leaks where planted.")
@click.argument("manifest")
@click.option(
    "--foreign", multiple=True, metavar="MANIFEST", help="Take foreign pictures from here; often."
)
@click.option("--rate", default=0.05, show_default=True, help="Share of rows with a foreign one.")
@click.option("--copies", default=300, show_default=True, help="Copies to add.")
@click.option("--leaks", default=100, show_default=True, help="Rows of another split to add.")
@click.option("--truth-col", metavar="C", help="Column with the true labels.")
@click.option("--none", "nothing", metavar="TEXT", help="True label of rows that show no class.")
@click.option("--against", type=click.Choice(["others"]), help="cleanvision and Datalab beside it.")
@recipe_options
@shared_options
def command(
    *,
    manifest: str,
    foreign: tuple[str, ...],
    rate: float,
    copies: int,
    leaks: int,
    truth_col: str | None,
    nothing: str | None,
    against: str | None,
    recipe: str | None,
    overrides: tuple[str, ...],
    shared: Shared,
) -> None:
    """Plant foreign pictures, copies and leaks in a copy of MANIFEST, and score what is found.

    With --rate 0 --copies 0 --leaks 0 the data stay as they are, and only rows whose true label is
    TEXT are looked for. Half of the leaks have the same content, half are changed as copies are:
    re-encoded, scaled, cropped by 5 %, mirrored.
    """
    import numpy as np

    from labelclean.benchmark.anomalies import AnomalyCase, score_anomalies
    from labelclean.data.cells import cell_texts
    from labelclean.data.opening import open_manifest
    from labelclean.recipe import load_recipe
    from labelclean.training.runtime import start_runtime

    settings = load_recipe(recipe, overrides)
    settings = replace(settings, data=data_settings(settings.data, shared))
    table = open_manifest(manifest, settings.data)
    lost = np.zeros(len(table), bool)
    if truth_col is not None and nothing is not None:
        lost = np.array([text == nothing for text in cell_texts(table.table.column(truth_col))])
    plain = replace(settings.data, limit=None, label_col=None)
    others = [open_manifest(name, plain) for name in foreign]
    runtime = start_runtime(
        shared.device, threads=shared.threads, seed=shared.seed, precision="auto"
    )
    case = AnomalyCase(rate, copies, leaks, against is not None)
    with tempfile.TemporaryDirectory(prefix="labelclean-") as folder:
        scores = score_anomalies(
            table, others, lost, case, Path(folder) / "planted", settings, runtime,
            run_options(shared),
        )  # fmt: skip
    if shared.as_json:
        click.echo(json.dumps([asdict(score) for score in scores], indent=2))
        return
    click.echo("| finding | method | measures |\n|---|---|---|")
    for score in scores:
        said = ", ".join(
            f"{name} {value:.3g}" for name, value in score.numbers.items() if value is not None
        )
        click.echo(f"| {score.finding} | {score.method} | {said} |")
