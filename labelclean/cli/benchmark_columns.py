"""What the benchmarks share that score columns of labels whose truth is known."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from labelclean.cli.options import Shared, data_settings, run_options
from labelclean.options import RunOptions

if TYPE_CHECKING:
    from labelclean.data.manifest import Manifest
    from labelclean.outputs.truth import Truth
    from labelclean.recipe import Recipe
    from labelclean.training.runtime import Runtime

ScoreColumn = Callable[["Manifest", "Truth", "Recipe", "Runtime", RunOptions, bool], Sequence[Any]]
"""Gives dataclasses with `labels`, `method` and numbers; the last argument: with a rival."""


def print_columns(
    score: ScoreColumn,
    numbers: Sequence[str],
    manifest: str,
    truth_col: str,
    columns: Sequence[str | None],
    settings: "Recipe",
    shared: Shared,
    rival: bool,
) -> None:
    """Score each column of labels, and print a line each as it comes, or all of them as JSON.

    Args:
        score: Scores one column.
        numbers: Which fields of a score to print.
        manifest: The samples.
        truth_col: Column with the true labels.
        columns: Columns to score; None: the one an audit would take.
        settings: The recipe.
        shared: The shared flags.
        rival: Whether to score a rival, too.
    """
    from labelclean.data.opening import open_manifest
    from labelclean.outputs.truth import Truth, read_truth
    from labelclean.training.runtime import start_runtime

    settings = replace(settings, data=data_settings(settings.data, shared))
    runtime = start_runtime(
        shared.device, threads=shared.threads, seed=shared.seed, precision="auto"
    )
    scores = []
    if not shared.as_json:
        click.echo("| labels | method | " + " | ".join(numbers) + " |")
        click.echo("|---|---" + "|---" * len(numbers) + "|")
    for column in columns:
        own = settings
        if column is not None:
            own = replace(settings, data=replace(settings.data, label_col=column))
        table = open_manifest(manifest, own.data)
        same = column == truth_col  # clean labels: everything that is flagged is a false alarm
        truth = Truth(truth_col, table.label) if same else read_truth(table, truth_col)
        for found in map(asdict, score(table, truth, own, runtime, run_options(shared), rival)):
            scores.append(found)
            if not shared.as_json:
                cells = [_cell(found[name]) for name in numbers]
                click.echo(f"| {found['labels']} | {found['method']} | {' | '.join(cells)} |")
    if shared.as_json:
        click.echo(json.dumps(scores, indent=2))


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
