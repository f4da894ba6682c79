"""`labelclean benchmark audit`: the default audit on data whose truth is known."""

import json
from dataclasses import asdict, replace

import click

from labelclean.cli.options import (
    Shared,
    data_settings,
    recipe_options,
    run_options,
    shared_options,
)

_NUMBERS = (
    "true_noise", "estimate", "ap", "f1", "best_f1", "calibration", "accuracy_before",
    "accuracy_flagged", "relabelled", "relabelled_right", "features", "rest",
)  # fmt: skip


@click.command("audit", short_help="Score the default audit where the truth is known.")
@click.argument("manifest")
@click.option("--truth-col", required=True, metavar="C", help="Column with the true labels.")
@click.option(
    "--labels", "columns", multiple=True, required=True, metavar="C", help="Column to audit; often."
)
@click.option("--against", type=click.Choice(["cleanlab"]), help="Run this beside it.")
@recipe_options
@shared_options
def command(
    manifest: str,
    truth_col: str,
    columns: tuple[str, ...],
    against: str | None,
    recipe: str | None,
    overrides: tuple[str, ...],
    shared: Shared,
) -> None:
    """Audit each column of labels of MANIFEST and compare with the true ones."""
    from labelclean.benchmark.audit import score_audit, with_labels
    from labelclean.data.opening import open_manifest
    from labelclean.outputs.truth import Truth, read_truth
    from labelclean.recipe import load_recipe
    from labelclean.training.runtime import start_runtime

    settings = load_recipe(recipe, overrides)
    settings = replace(settings, data=data_settings(settings.data, shared))
    runtime = start_runtime(
        shared.device, threads=shared.threads, seed=shared.seed, precision="auto"
    )
    scores = []
    if not shared.as_json:
        click.echo("| labels | method | " + " | ".join(_NUMBERS) + " |")
        click.echo("|---|---" + "|---" * len(_NUMBERS) + "|")
    for column in columns:
        own = with_labels(settings, column)
        table = open_manifest(manifest, own.data)
        same = column == truth_col  # clean labels: everything that is flagged is a false alarm
        truth = Truth(column, table.label) if same else read_truth(table, truth_col)
        rival = against is not None
        found = score_audit(table, truth, own, runtime, run_options(shared), rival)
        scores += found
        if not shared.as_json:
            for score in found:
                click.echo(_line(asdict(score)))
    if shared.as_json:
        click.echo(json.dumps([asdict(score) for score in scores], indent=2))


def _line(score: dict[str, object]) -> str:
    cells = [_cell(score[name]) for name in _NUMBERS]
    return f"| {score['labels']} | {score['method']} | " + " | ".join(cells) + " |"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
