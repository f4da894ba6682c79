"""`labelclean demo`: a small real data set with planted errors, and an audit that finds them."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labelclean.cli.options import Shared, data_settings, shared_options
from labelclean.options import IMPORT, Clock

if TYPE_CHECKING:
    from labelclean.data.demo import Demo
    from labelclean.workflows.write import Run


@click.command("demo")
@click.argument(
    "folder", metavar="[DIR]", type=click.Path(path_type=Path), default="labelclean-demo"
)
@click.option("--data-only", is_flag=True, help="Write the data and stop.")
@click.option("--overwrite", is_flag=True, help="Replace the demo's files in DIR.")
@shared_options
def command(*, folder: Path, data_only: bool, overwrite: bool, shared: Shared) -> None:
    """Write 1,797 handwritten digits with 10 % wrong labels to DIR, and find the wrong ones.

    DIR (default: labelclean-demo) gets the pictures, dataset.csv with the wrong labels among the
    right ones, and truth.csv with the column true_label. The audit sees dataset.csv only and goes
    to DIR/dataset-audit; what it found is then compared with truth.csv.
    """
    clock = Clock(click.get_current_context().find_root().obj)
    with clock.phase(IMPORT):
        from labelclean.data.demo import write_demo

    with clock.phase("demo"):
        demo = write_demo(folder, seed=shared.seed, overwrite=overwrite)
    facts = {
        "dataset": demo.dataset.as_posix(),
        "truth": demo.truth.as_posix(),
        "rows": demo.rows,
        "planted_errors": demo.planted,
        "seed": shared.seed,
    }
    if not shared.as_json:
        click.echo(
            f"{demo.folder}: {demo.rows} handwritten digits, {demo.planted} of their labels made "
            f"wrong ({demo.planted / demo.rows:.1%})"
        )
    if data_only:
        if shared.as_json:
            click.echo(json.dumps(facts))
        return
    run, scores = _audit(demo, shared, clock)
    if shared.as_json:
        click.echo(json.dumps({**facts, "run": run.folder.as_posix(), "found": scores}))
        return
    from labelclean.cli.summary import against_truth, summarise

    click.echo("\n".join(["", summarise(run), *against_truth(scores)]))
    if not shared.quiet:
        click.echo(f"Next: labelclean export {run.folder} clean.csv", err=True)


def _audit(demo: "Demo", shared: Shared, clock: Clock) -> "tuple[Run, dict[str, object]]":
    """Audit the demo's data with the default settings, and compare with the truth."""
    with clock.phase(IMPORT):
        from labelclean.cli.options import run_options
        from labelclean.errors import LabelCleanError
        from labelclean.outputs.truth import encode_truth, truth_scores
        from labelclean.recipe import Recipe
        from labelclean.workflows.audit import run_audit

    recipe = Recipe()
    recipe = replace(recipe, data=data_settings(recipe.data, shared))
    run = run_audit(
        demo.dataset,
        demo.folder / "dataset-audit",
        recipe,
        seed=shared.seed,
        options=replace(run_options(shared), clock=clock),
        overwrite=True,
    )
    if run is None:
        raise LabelCleanError("the demo runs in one process; start it without torchrun.")
    with demo.truth.open(encoding="utf-8", newline="") as file:
        names = [line["true_label"] for line in csv.DictReader(file)]
    manifest = run.audit.manifest
    truth = encode_truth(manifest, demo.truth.name, names[: len(manifest)])
    return run, truth_scores(run.audit, truth)
