"""`labelclean report`: judge a finished run again, without training."""

import json
from pathlib import Path

import click

from labelclean.cli.options import output_options, queue, wait_option

_PATH = click.Path(path_type=Path)


@click.command("report", short_help="Rewrite a run's outputs from its records.")
@click.argument("run", type=_PATH)
@click.option("--decisions", type=_PATH, help="Decisions of people (.jsonl); their labels count.")
@click.option("--manifest", type=_PATH, help="Where the audited manifest is now.")
@wait_option
@output_options
def command(
    *,
    run: Path,
    decisions: Path | None,
    manifest: Path | None,
    wait: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Judge the run in the folder RUN again from its records; nothing is trained.

    Rewrites issues.parquet, corrected.parquet, the matrices, report.html and run.json. Labels that
    people confirmed or gave count as right, which also sharpens the judgement of other rows.
    """
    from labelclean.cli.summary import summarise
    from labelclean.workflows.report import report

    result = report(run, manifest=manifest, decisions=decisions, wait=queue(wait))
    click.echo(json.dumps(result.facts, indent=2) if as_json else summarise(result))
    if decisions is None and (run / "decisions.jsonl").is_file() and not quiet:
        click.echo(f"Note: {run}/decisions.jsonl was not used; name it with --decisions.", err=True)
