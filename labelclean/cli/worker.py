"""`labelclean worker`: does some of the shards of an audit, on any machine that sees its folder."""

import json
import re
from pathlib import Path

import click

from labelclean.cli.options import output_options
from labelclean.errors import ConfigError
from labelclean.options import progress_bar

_SHARE = re.compile(r"(\d+)/(\d+)")


@click.command("worker", short_help="Do a share of an audit's shards.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--shards", metavar="I/N", default="1/1", show_default=True, help="Do the I-th of N shares."
)
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@output_options
def command(run: Path, shards: str, threads: int, as_json: bool, quiet: bool) -> None:
    """Decode and embed a share of the pictures of the audit that was begun in RUN.

    Begin with `labelclean audit MANIFEST --out RUN --engine workers`, start as many workers as you
    like on machines that see RUN and the pictures (an array job of Slurm, a job of Kubernetes),
    and end with the same audit and --resume. Shards that are done are skipped, so a worker that
    was lost is simply started again.
    """
    found = _SHARE.fullmatch(shards)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise ConfigError(f"--shards is {shards!r}; give for example 2/8, the second of eight.")
    from labelclean.runs.folder import RunFolder
    from labelclean.workflows.part_worker import PartWorker

    worker = PartWorker(RunFolder(run).work, threads)
    share = worker.plan.share(int(found[1]), int(found[2]))
    rows = done = 0
    with progress_bar("shards", shown=False if quiet else None) as on_progress:
        total = sum(worker.plan.rows(n).stop - worker.plan.rows(n).start for n in share)
        seen = 0
        for number in share:
            did = worker.do(number)
            rows, done = rows + did.rows, done + bool(did.rows)
            seen += worker.plan.rows(number).stop - worker.plan.rows(number).start
            on_progress(seen, total)
    facts = {"shards": len(share), "done": done, "done_before": len(share) - done, "rows": rows}
    left = len(worker.store.missing())
    if as_json:
        click.echo(json.dumps({**facts, "left": left}))
        return
    click.echo(
        f"{done} of {len(share)} shards done, {len(share) - done} were done before; {rows} rows. "
        f"{left} of {len(worker.plan.parts)} shards of the audit are left."
    )
