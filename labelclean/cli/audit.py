"""`labelclean audit`: the main job."""

import json
from dataclasses import replace
from pathlib import Path

import click

from labelclean.cli.options import Shared, data_settings, recipe_options, shared_options
from labelclean.cli.place import place_from

GATE_CLOSED = 4


@click.command("audit", short_help="Find the wrong labels of a data set.")
@click.argument("manifest")
@click.option("--out", type=click.Path(path_type=Path), help="Run folder; default: NAME-audit.")
@recipe_options
@click.option("--loss", metavar="NAME", help="Loss to train with; see `labelclean losses`.")
@click.option("--backbone", metavar="NAME", help="lite0, a timm name, hf-hub: or local-dir:.")
@click.option(
    "--mode",
    type=click.Choice(["head", "finetune", "scratch"]),
    help="What is trained; default: head without a GPU, else finetune.",
)
@click.option("--epochs", type=click.IntRange(min=1), help="How often every sample is seen.")
@click.option("--audit-split", metavar="S", help="Audit the rows of this held-out split too.")
@click.option(
    "--fail-on",
    metavar="CONDITION",
    help='Exit with 4 if it holds: "noise>2%", "flagged>100", "relabel>=5%".',
)
@click.option("--retrain", is_flag=True, help="Train on the corrected labels afterwards.")
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=1,
    help="Audit the corrected labels again, at most N rounds; implies --retrain.",
)
@click.option("--resume", is_flag=True, help="Go on with a run that did not end.")
@click.option("--overwrite", is_flag=True, help="Replace the run in the folder.")
@shared_options
def command(
    *,
    manifest: str,
    out: Path | None,
    recipe: str | None,
    overrides: tuple[str, ...],
    loss: str | None,
    backbone: str | None,
    mode: str | None,
    epochs: int | None,
    audit_split: str | None,
    fail_on: str | None,
    retrain: bool,
    rounds: int,
    resume: bool,
    overwrite: bool,
    shared: Shared,
) -> None:
    """Train on MANIFEST, watch every sample, and rank the rows whose label looks wrong.

    MANIFEST is a .csv, .tsv, .parquet, .jsonl or .npz file or a folder of images. Works under
    torchrun and accelerate launch with the same flags.
    """
    from labelclean.auditing import default_folder, run_audit
    from labelclean.cli.gate import parse_gate
    from labelclean.cli.retrain import describe_rounds
    from labelclean.cli.summary import summarise
    from labelclean.recipe import load_recipe
    from labelclean.rounds import follow_up

    flags = {
        "loss.name": loss,
        "model.backbone": backbone,
        "training.mode": mode,
        "training.epochs": epochs,
        "data.audit_split": audit_split,
    }
    given = [f"{key}={json.dumps(value)}" for key, value in flags.items() if value is not None]
    settings = load_recipe(recipe, (*given, *overrides))
    settings = replace(settings, data=data_settings(settings.data, shared))
    gate = None if fail_on is None else parse_gate(fail_on)
    folder = out or default_folder(manifest)
    place = place_from(shared)
    if resume and (folder / "run.json").is_file():
        click.echo(f"{folder} is complete; nothing to resume.", err=True)
        return
    run = run_audit(
        manifest,
        folder,
        settings,
        seed=shared.seed,
        place=place,
        resume=resume,
        overwrite=overwrite,
    )
    more = None
    if retrain or rounds > 1:
        more = follow_up(manifest, folder, settings, rounds=rounds, seed=shared.seed, place=place)
    if run is None:
        return
    if shared.as_json:
        click.echo(json.dumps({**run.facts, **(more.facts() if more else {})}, indent=2))
    else:
        click.echo(summarise(run) + (f"\n\n{describe_rounds(more)}" if more else ""))
    if gate is not None and gate.holds(run.facts):
        click.echo(f"--fail-on: {fail_on} holds.", err=True)
        raise click.exceptions.Exit(GATE_CLOSED)
