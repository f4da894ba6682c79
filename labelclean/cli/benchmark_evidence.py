"""`labelclean benchmark evidence`: what every source of evidence is worth."""

import click

from labelclean.cli.benchmark_columns import print_columns
from labelclean.cli.options import Shared, recipe_options, shared_options

_NUMBERS = (
    "weight", "ap", "f1", "best_f1", "true_noise", "estimate", "noise_error", "calibration",
)  # fmt: skip


@click.command("evidence", short_help="Score every source of evidence where the truth is known.")
@click.argument("manifest")
@click.option("--truth-col", required=True, metavar="C", help="Column with the true labels.")
@click.option(
    "--labels", "columns", multiple=True, metavar="C", help="Column to audit; often. [label column]"
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
    """Score the fused judgement of MANIFEST, every source alone, and all without each in turn.

    All of it comes from one audit's training, per column of labels.
    """
    from labelclean.benchmark.evidence import score_evidence
    from labelclean.recipe import load_recipe

    settings, rival = load_recipe(recipe, overrides), against is not None
    asked = columns or (None,)
    print_columns(score_evidence, _NUMBERS, manifest, truth_col, asked, settings, shared, rival)
