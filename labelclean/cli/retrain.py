"""`labelclean retrain`: train on the corrected labels of a run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labelclean.cli.options import Shared, run_options, shared_options, wait_option
from labelclean.cli.text import printable

if TYPE_CHECKING:
    from labelclean.workflows.retrain import Retrained
    from labelclean.workflows.rounds import FollowUp

_MEASURES = {
    "accuracy": "accuracy at the end",
    "best_accuracy": "best accuracy of an epoch",
    "clean_subset": "right labels learned",
    "noisy_subset": "wrong labels learned",
    "hybrid": "hybrid accuracy",
}


@click.command("retrain", short_help="Train on the corrected labels of a run.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--loss",
    metavar="NAME",
    help="Loss to train with; default: the run's own, or cce where nobody named that and cce fits "
    "the corrected labels better.",
)
@click.option("--epochs", type=click.IntRange(min=1), help="How often every sample is seen.")
@click.option(
    "--decisions",
    type=click.Path(path_type=Path, dir_okay=False),
    help="decisions.jsonl of `labelclean review`; stands above what the audit decided.",
)
@click.option("--truth-col", metavar="C", help="Column with true labels, to measure against.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    help="Change one setting of the run's recipe; may be repeated.",
)
@click.option("--overwrite", is_flag=True, help="Replace an earlier retraining.")
@wait_option
@shared_options
def command(
    *,
    run: Path,
    loss: str | None,
    epochs: int | None,
    decisions: Path | None,
    truth_col: str | None,
    overrides: tuple[str, ...],
    overwrite: bool,
    wait: bool,
    shared: Shared,
) -> None:
    """Train on the corrected labels of RUN into RUN/retrain, and compare with the given labels.

    Accuracy is measured on the rows with split `test`, else on a tenth of the rows that is held
    out of both trainings.
    """
    from labelclean.losses import loss_name
    from labelclean.recipe import flag_overrides
    from labelclean.workflows.retrain import retrain_run

    flags = {
        "loss.name": None if loss is None else loss_name(loss),
        "training.epochs": epochs,
        "data.workers": shared.workers,
    }
    options = run_options(shared, wait=wait)
    done = retrain_run(
        run,
        overrides=(*flag_overrides(flags), *overrides),
        decisions=decisions,
        truth_col=truth_col,
        seed=shared.seed,
        options=options,
        overwrite=overwrite,
    )
    if done is not None:
        click.echo(json.dumps(done.facts, indent=2) if shared.as_json else describe(done))


def describe(done: "Retrained") -> str:
    """Give the comparison as lines of text."""
    facts = done.facts
    before, after, counts = facts["before"], facts["after"], facts["counts"]
    tried = ", ".join(f"{name} {share:.1%}" for name, share in facts["loss_trials"].items())
    lines = [
        *([f"Agreement with corrected labels set aside: {tried}"] if tried else []),
        f"Trained with {facts['loss']['name']} on {after['trained_rows']} rows: "
        f"{counts['changed']} labels changed, {counts['left_out']} rows left out, "
        f"{counts['decided']} decided by people",
        f"Measured on {facts['evaluation']['rows']} rows ({facts['evaluation']['on']}, "
        f"{facts['evaluation']['labels']} labels)",
        "",
        f"{'':<27}before   after",
        *(_line(name, title, before, after) for name, title in _MEASURES.items() if name in after),
        "",
        *facts["warnings"],
        f"Model         {printable(str(done.folder / 'model'))}",
    ]
    return "\n".join(lines)


def describe_rounds(done: "FollowUp") -> str:
    """Give what happened after the first audit as lines of text."""
    lines = [
        f"Round {number}: {changed} labels changed"
        for number, changed in enumerate(done.changed, 1)
    ]
    if len(lines) == 1:
        lines = []
    elif not done.changed[-1]:
        lines.append("The labels have stopped changing.")
    return "\n".join([*lines, describe(done.retrained)])


def _line(name: str, title: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    shown = ("      -" if part[name] is None else f"{part[name]:7.2%}" for part in (before, after))
    return f"{title:<26}" + " ".join(shown)
