"""`labelclean verify`: is a run folder whole?"""

import json
from pathlib import Path

import click

from labelclean.cli.options import output_options

_PATH = click.Path(path_type=Path)


@click.command("verify", short_help="Check that a run folder is whole and its own.")
@click.argument("run", type=_PATH)
@click.option("--manifest", type=_PATH, help="Where the audited manifest is now.")
@output_options
def command(*, run: Path, manifest: Path | None, as_json: bool, quiet: bool) -> None:
    """Check everything that must hold for the run folder RUN; exit code 3 where something does not.

    Every file is the one run.json names; every audited row stands once in issues.parquet and agrees
    with corrected.parquet; the evidence is about the same rows and samples, up to 256 of which are
    read again; the decisions can be read; a retraining and rounds inside are whole, too.
    """
    from labelclean.errors import DataError
    from labelclean.runs.verify import verify_run

    found = verify_run(run, manifest)
    if found.faults:
        raise DataError(f"{run} is not whole: {'; '.join(found.faults).rstrip('.')}.")
    if as_json:
        facts = {"rows": found.rows, "files": found.files, "decisions": found.decisions}
        click.echo(json.dumps({"run": run.as_posix(), **facts, "notes": found.notes}, indent=2))
        return
    for note in found.notes:
        if not quiet:
            click.echo(f"Note: {note}", err=True)
    click.echo(
        f"{run} is whole: {found.files} files, {found.rows} rows, {found.decisions} decisions"
    )
