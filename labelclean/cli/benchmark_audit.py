"""`labelclean benchmark audit`: the default audit on data whose truth is known."""

import click

from labelclean.cli.benchmark_columns import print_columns
from labelclean.cli.options import Shared, recipe_options, shared_options

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
    from labelclean.benchmark.audit import score_audit
    from labelclean.recipe import load_recipe

    settings, rival = load_recipe(recipe, overrides), against is not None
    print_columns(score_audit, _NUMBERS, manifest, truth_col, columns, settings, shared, rival)
