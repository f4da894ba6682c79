"""`labelclean audit`: the main job."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from labelclean.cli.options import (
    Shared,
    data_settings,
    recipe_options,
    run_options,
    shared_options,
    wait_option,
)
from labelclean.options import IMPORT, Clock

if TYPE_CHECKING:
    from labelclean.cli.gate import Gate
    from labelclean.recipe import Recipe
    from labelclean.runs.compare import RunLines
    from labelclean.workflows.rounds import FollowUp
    from labelclean.workflows.write import Run

GATE_CLOSED = 4
_FILE = click.Path(path_type=Path)


@click.command("audit", short_help="Find the wrong labels of a data set.")
@click.argument("manifest")
@click.option("--out", type=click.Path(path_type=Path), help="Run folder; default: NAME-audit.")
@recipe_options
@click.option("--loss", metavar="NAME", help="See `labelclean losses`; or package.module:Class.")
@click.option("--strategy", metavar="NAME", help="Way to train; see `labelclean strategies`.")
@click.option("--backbone", metavar="NAME", help="lite0, a timm name, hf-hub: or local-dir:.")
@click.option(
    "--mode",
    type=click.Choice(["head", "finetune", "scratch"]),
    help="What is trained; default: head without a GPU, else finetune.",
)
@click.option("--epochs", type=click.IntRange(min=1), help="How often every sample is seen.")
@click.option(
    "--evidence",
    metavar="NAME[,NAME]",
    help="Sources that may speak: heads, discriminant, neighbours, network; default: all.",
)
@click.option("--features", type=_FILE, help="Features (N, D) as .npy; no pictures are needed.")
@click.option(
    "--pred-probs",
    type=_FILE,
    help="Out-of-sample probabilities (N, C) as .npy, in class order; nothing is trained.",
)
@click.option("--truth-col", metavar="C", help="Column of true labels, only to compare with.")
@click.option(
    "--decisions",
    type=_FILE,
    help="Decisions about these rows (.jsonl): labels people gave count as verified, rows they "
    "dropped are left out.",
)
@click.option("--baseline", type=_FILE, metavar="RUN", help="Earlier run to compare with.")
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
@click.option(
    "--engine",
    type=click.Choice(["local", "ray", "workers"]),
    help="Decode and embed in shards: in processes of this machine, on a Ray cluster, or by "
    "`labelclean worker`.",
)
@click.option("--resume", is_flag=True, help="Go on with a run that did not end.")
@click.option("--overwrite", is_flag=True, help="Replace the run in the folder.")
@click.option("--profile", is_flag=True, help="Print the time and memory that every phase took.")
@wait_option
@shared_options
def command(
    *,
    manifest: str,
    out: Path | None,
    recipe: str | None,
    overrides: tuple[str, ...],
    loss: str | None,
    strategy: str | None,
    backbone: str | None,
    mode: str | None,
    epochs: int | None,
    evidence: str | None,
    features: Path | None,
    pred_probs: Path | None,
    truth_col: str | None,
    decisions: Path | None,
    baseline: Path | None,
    audit_split: str | None,
    fail_on: str | None,
    retrain: bool,
    rounds: int,
    engine: str | None,
    resume: bool,
    overwrite: bool,
    profile: bool,
    wait: bool,
    shared: Shared,
) -> None:
    """Train on MANIFEST, watch every sample, and rank the rows whose label looks wrong.

    MANIFEST is a .csv, .tsv, .parquet, .jsonl, .npz or .tar file, a folder, a pattern of shards
    (shards-{000..099}.tar), or a URL of one of these (s3://...). Works under torchrun, too.
    """
    clock = Clock(click.get_current_context().find_root().obj)
    with clock.phase(IMPORT):
        from labelclean.cli.gate import parse_gate
        from labelclean.losses import loss_name
        from labelclean.runs.compare import read_earlier
        from labelclean.workflows.audit import audit_lock, default_folder, run_audit
        from labelclean.workflows.inputs import SideInputs
        from labelclean.workflows.rounds import follow_up

    flags = {
        "loss.name": None if loss is None else loss_name(loss),
        "strategy.name": strategy,
        "model.backbone": backbone,
        "training.mode": mode,
        "training.epochs": epochs,
        "evidence.sources": None if evidence is None else evidence.split(","),
        "data.audit_split": audit_split,
    }
    settings = _resolve(recipe, flags, overrides, shared)
    gate = None if fail_on is None else parse_gate(fail_on)
    folder = out or default_folder(manifest)
    options = replace(run_options(shared, wait=wait), engine=engine)
    earlier = None if baseline is None else read_earlier(baseline)
    if resume and (folder / "run.json").is_file():
        _answer_again(folder, gate, as_json=shared.as_json)
        return
    side, more = SideInputs(features, pred_probs, truth_col, decisions, earlier), None
    start = partial(run_audit, resume=resume, overwrite=overwrite, seed=shared.seed)
    with audit_lock(folder, options):
        run = start(manifest, folder, settings, options=replace(options, clock=clock), side=side)
        if retrain or rounds > 1:
            go_on = partial(follow_up, rounds=rounds, decisions=decisions, seed=shared.seed)
            more = go_on(manifest, folder, settings, options=options)
    if run is not None:
        _answer(run, earlier, more, gate, clock if profile else None, as_json=shared.as_json)
    elif engine == "workers" and shared.as_json:
        click.echo(json.dumps({"planned": str(folder)}))


def _answer(
    run: "Run",
    earlier: "RunLines | None",
    more: "FollowUp | None",
    gate: "Gate | None",
    profile: Clock | None,
    *,
    as_json: bool,
) -> None:
    """Print what came out, and end with 4 where the condition of --fail-on holds."""
    if profile is not None:
        _show_profile(run, profile)
    if as_json:
        click.echo(json.dumps(_with_verdict(_facts(run, earlier, more), gate), indent=2))
    else:
        _tell(run, earlier, more)
    _close(gate, run.facts)


def _show_profile(run: "Run", clock: Clock) -> None:
    from labelclean.cli.profile import profile_text

    timings = cast("Mapping[str, float]", run.facts["timings"])
    click.echo(profile_text(timings, clock, len(run.audit.row)), err=True)


def _answer_again(folder: Path, gate: "Gate | None", *, as_json: bool) -> None:
    """Say that a run is complete, and what it said then."""
    from labelclean.runs.reading import read_facts

    click.echo(f"{folder} is complete; nothing to resume.", err=True)
    facts = read_facts(folder)
    if as_json:
        click.echo(json.dumps(_with_verdict(facts, gate), indent=2))
    _close(gate, facts)


def _with_verdict(facts: Mapping[str, object], gate: "Gate | None") -> dict[str, object]:
    """Add what --fail-on found to what --json prints."""
    return {**facts} if gate is None else {**facts, "fail_on": gate.verdict(facts)}


def _close(gate: "Gate | None", facts: Mapping[str, object]) -> None:
    """End with 4 where the condition of --fail-on holds."""
    if gate is not None and gate.holds(facts):
        click.echo(f"--fail-on: {gate.text} holds.", err=True)
        raise click.exceptions.Exit(GATE_CLOSED)


def _resolve(
    recipe: str | None,
    flags: Mapping[str, object],
    overrides: tuple[str, ...],
    shared: Shared,
) -> "Recipe":
    """Resolve the recipe: flags stand above it, and --set above flags."""
    from labelclean.recipe import flag_overrides, load_recipe

    settings = load_recipe(recipe, (*flag_overrides(flags), *overrides))
    return replace(settings, data=data_settings(settings.data, shared))


def _facts(run: "Run", earlier: "RunLines | None", more: "FollowUp | None") -> dict[str, object]:
    """Give run.json, what changed beside an earlier run, and what came after."""
    from labelclean.runs.compare import compare_runs, read_earlier

    changes = {}
    if earlier is not None:
        changes = {"baseline": compare_runs(earlier, read_earlier(run.folder))}
    return {**run.facts, **changes, **({} if more is None else more.facts())}


def _tell(run: "Run", earlier: "RunLines | None", more: "FollowUp | None") -> None:
    """Print what was found, what changed beside an earlier run, and what came after."""
    from labelclean.cli.retrain import describe_rounds
    from labelclean.cli.summary import describe_changes, summarise
    from labelclean.runs.compare import compare_runs, read_earlier

    click.echo(summarise(run))
    if earlier is not None:
        click.echo(describe_changes(compare_runs(earlier, read_earlier(run.folder))))
    if more is not None:
        click.echo(f"\n{describe_rounds(more)}")
