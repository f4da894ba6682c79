"""`labelclean export`: what leaves a run."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labelclean.cli.options import hold_target, output_options, wait_option
from labelclean.errors import ConfigError

if TYPE_CHECKING:
    from labelclean.correction.decisions import Decisions
    from labelclean.correction.outcome import Outcome
    from labelclean.data.places import Place
    from labelclean.runs.reading import OpenedRun

_PATH = click.Path(path_type=Path)


@click.command("export", short_help="Write corrected labels, a patch or the model.")
@click.argument("run", type=_PATH)
@click.argument("target", metavar="TARGET")
@click.option(
    "--policy",
    type=click.Choice(["relabel", "drop", "keep"]),
    help="Take every suggestion, leave flagged rows out, or keep all given labels; default: what "
    "the run decided.",
)
@click.option("--min-confidence", type=float, metavar="P", help="Change only what is so sure.")
@click.option("--drop", metavar="LISTS", help="Leave these out as well: outliers,duplicates,leaks.")
@click.option("--decisions", type=_PATH, help="Decisions of people (.jsonl); they stand above all.")
@click.option("--manifest", metavar="PATH|URL", help="Where the audited manifest is now.")
@click.option("--revert", type=_PATH, metavar="PATCH", help="Undo a patch instead.")
@click.option("--with-evidence", is_flag=True, help="Add label_given, label_action, ... p_error.")
@click.option("--raw-csv", is_flag=True, help="Leave cells a spreadsheet would run as they are.")
@click.option("--link", is_flag=True, help="Image folder: link to the pictures, do not copy.")
@click.option("--overwrite", is_flag=True, help="Replace TARGET.")
@wait_option
@output_options
def command(
    *,
    run: Path,
    target: str,
    policy: str | None,
    min_confidence: float | None,
    drop: str | None,
    decisions: Path | None,
    manifest: str | None,
    revert: Path | None,
    with_evidence: bool,
    raw_csv: bool,
    link: bool,
    overwrite: bool,
    wait: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write what the run folder RUN found to TARGET.

    TARGET is a table (.parquet, .csv, .tsv, .jsonl, .npz), a new folder of images by class, a
    reversible .patch.jsonl, flagged rows as tasks (.labelstudio.json, with the labelling interface
    in .labelstudio.xml beside it), or the model as .onnx. The audited files are never changed.
    Tables, folders and patches may go to a URL (s3://...).

    With --revert PATCH, TARGET gets the table as it was before: TARGET itself is restored if it
    is there, else the table named with --manifest, else the audited one.
    """
    from labelclean.data.places import as_place

    place = as_place(target)
    hold_target(place, "export", wait)
    if revert is not None:
        changing = (policy, min_confidence, drop, decisions, with_evidence or None, link or None)
        if any(flag is not None for flag in changing):
            raise ConfigError("--revert only undoes a patch; leave the other flags out.")
        _revert(run, revert, manifest, _here(place), overwrite=overwrite, as_json=as_json)
        return
    if place.suffix.lower() == ".onnx":
        _export_model(run, _here(place), overwrite)
        return
    from labelclean.runs.decisions_file import read_decisions
    from labelclean.runs.reading import open_audited
    from labelclean.workflows.export import Form, decide_rows, write_export

    opened = open_audited(run, None if manifest is None else as_place(manifest))
    people = {} if decisions is None else read_decisions(decisions, opened.manifest)
    if place.name.lower().endswith(".labelstudio.json"):
        if policy is not None or min_confidence is not None or drop is not None:
            raise ConfigError("tasks are what the run flagged; leave the policy out.")
        _export_tasks(opened, _here(place), people, overwrite=overwrite, as_json=as_json)
        return
    lists = () if drop is None else tuple(name.strip() for name in drop.split(","))
    outcome = decide_rows(opened, policy, min_confidence, decisions, lists)
    write_export(opened, outcome, place, Form(raw_csv, link, with_evidence, overwrite))
    _say(place, outcome, len(people), as_json)
    unknown = (opened.facts.get("findings") or {}).get("unknown") or ()
    for sentence in unknown if lists and not quiet else ():
        click.echo(f"Note: {sentence}", err=True)
    if decisions is None and (run / "decisions.jsonl").is_file() and not quiet:
        click.echo(f"Note: {run}/decisions.jsonl was not used; name it with --decisions.", err=True)


def _here(place: "Place") -> Path:
    """Give a target on this machine; only tables, folders and patches go to a store."""
    if not isinstance(place, Path):
        raise ConfigError(
            f"{place}: tables, image folders and patches are written to a store, this is not; "
            "name a file of this machine and copy it."
        )
    return place


def _export_tasks(
    run: "OpenedRun", target: Path, decided: "Decisions", *, overwrite: bool, as_json: bool
) -> None:
    from labelclean.review.label_studio import write_tasks
    from labelclean.workflows.export import refuse_target

    refuse_target(run, target, overwrite=overwrite)
    count = write_tasks(run, target, decided, overwrite=overwrite)
    facts = {"target": target.as_posix(), "tasks": count}
    click.echo(json.dumps(facts) if as_json else f"{target}: {count} tasks")


def _say(target: "Place", outcome: "Outcome", people: int, as_json: bool) -> None:
    facts = {
        "target": target.as_posix(),
        "rows": int(outcome.kept.sum()),
        "relabelled": len(outcome.moved),
        "left_out": len(outcome.dropped),
        "decisions": people,
    }
    if as_json:
        click.echo(json.dumps(facts))
        return
    click.echo(
        f"{target}: {facts['rows']} rows, {facts['relabelled']} relabelled, "
        f"{facts['left_out']} left out" + (f", {people} decided by people" if people else "")
    )


def _revert(
    run: Path, patch: Path, manifest: str | None, target: Path, *, overwrite: bool, as_json: bool
) -> None:
    from labelclean.data.places import as_place
    from labelclean.outputs.patch_file import read_patch
    from labelclean.runs.reading import original_path, read_facts
    from labelclean.workflows.revert import revert

    source = None if manifest is None else as_place(manifest)
    if source is None:
        source = target if target.exists() else original_path(run, read_facts(run))
    elif target.exists() and not overwrite:
        raise ConfigError(f"{target} exists; pass --overwrite to replace it, or name another.")
    exact = revert(run, read_patch(patch), source, target)
    if as_json:
        click.echo(json.dumps({"target": target.as_posix(), "original_bytes": exact}))
    elif exact:
        click.echo(f"{target}: restored, byte for byte as it was audited")
    else:
        click.echo(f"{target}: labels restored; the file differs from the audited one elsewhere")


def _export_model(run: Path, target: Path, overwrite: bool) -> None:
    from labelclean.models.onnx import export_onnx
    from labelclean.runs.reading import read_facts, require_own_model

    facts = read_facts(run)
    if target.exists() and not overwrite:
        raise ConfigError(f"{target} exists; pass --overwrite to replace it, or name another.")
    export_onnx(run, target)
    require_own_model(run, facts)
    click.echo(f"{target}: the model of {run}")
