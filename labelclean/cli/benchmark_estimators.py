"""`labelclean benchmark estimators`: the scikit-learn face, with its rivals in the same run."""

import json
from typing import Any

import click


@click.command(short_help="Check and compare the scikit-learn estimators.")
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option(
    "--small-seeds",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Seeds for sets of few rows, where errors are looked for.",
)
@click.option(
    "--part",
    type=click.Choice(["contract", "accuracy", "finding", "speed"]),
    multiple=True,
    help="Measure only this part; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    seeds: int, small_seeds: int, part: tuple[str, ...], as_json: bool, quiet: bool
) -> None:
    """Run scikit-learn's checks, and compare accuracy, errors found and seconds."""
    from labelclean.benchmark import estimators

    def watch(_: str) -> None:
        click.echo("" if quiet else ".", err=True, nl=False)

    measures: dict[str, Any] = {
        "contract": lambda: list(estimators.contract()),
        "accuracy": lambda: list(estimators.estimator_accuracy(seeds, watch)),
        "finding": lambda: list(estimators.finding(seeds, small_seeds, watch)),
        "speed": estimators.speed,
    }
    answer = {name: measure() for name, measure in measures.items() if not part or name in part}
    click.echo("", err=True, nl=not quiet)
    if as_json:
        click.echo(json.dumps(answer))
        return
    _contract(answer.get("contract", []))
    _versus(answer.get("accuracy", []), "accuracy", "RobustClassifier", "LogisticRegression")
    _versus(answer.get("finding", []), "AP", "LabelCleaner", "CleanLearning(LogisticRegression)")
    _speed(answer.get("speed", {}))


def _contract(rows: list[dict[str, Any]]) -> None:
    if rows:
        click.echo("| estimator | checks passed | failed | skipped |\n|---|---|---|---|")
    for row in rows:
        click.echo(f"| {row['estimator']} | {row['passed']} | {row['failed']} | {row['skipped']} |")


def _versus(rows: list[dict[str, Any]], what: str, ours: str, rival: str) -> None:
    if rows:
        click.echo(f"\n| set | noise | seeds | {what}, {ours} | {what}, {rival} |")
        click.echo("|---|---|---|---|---|")
    for row in rows:
        click.echo(
            f"| {row['set']} | {row['noise']:.0%} | {row['seeds']} | {row['ours']:.4f} "
            f"| {row['rival']:.4f} |"
        )


def _speed(seconds: dict[str, float]) -> None:
    if seconds:
        click.echo("\n| fit of 10,000 x 50 | seconds | times LogisticRegression |\n|---|---|---|")
    for name, spent in seconds.items():
        click.echo(f"| {name} | {spent:.2f} | {spent / seconds['LogisticRegression']:.1f} |")
