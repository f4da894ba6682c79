"""`labelclean review`: look at suspects and decide."""

import json
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labelclean.cli.options import output_options, queue, wait_option

if TYPE_CHECKING:
    from labelclean.review.state import ReviewState

_PATH = click.Path(path_type=Path)


@click.command("review", short_help="Look at suspects and decide, in the browser.")
@click.argument("run", type=_PATH)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Where to listen; default: any."
)
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
@click.option("--manifest", type=_PATH, help="Where the audited manifest is now.")
@click.option(
    "--import",
    "annotations",
    type=_PATH,
    metavar="FILE",
    help="Take over completed annotations of Label Studio (JSON) instead of serving the page.",
)
@wait_option
@output_options
def command(
    *,
    run: Path,
    port: int,
    no_open: bool,
    manifest: Path | None,
    annotations: Path | None,
    wait: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Serve a page about the run in the folder RUN, on this machine only, until Ctrl-C.

    Decisions are saved at once in RUN/decisions.jsonl; `export`, `retrain`, `report` and `audit`
    take that file with --decisions. In the order "most informative first" every 20 answers also
    tell how many labels are wrong and how many automatic relabels are right, whatever other rows
    you looked at.

    For Label Studio, `labelclean export RUN tasks.labelstudio.json` writes the suspects as tasks;
    --import takes the completed ones back.

    From another machine: `ssh -L PORT:127.0.0.1:PORT HOST` with the same PORT on both sides, and
    open the printed address.
    """
    if annotations is not None:
        _take_over(run, manifest, annotations, wait=wait, as_json=as_json)
        return
    from labelclean.review.serve import serve_review

    def ready(address: str, review: "ReviewState") -> None:
        if as_json:
            click.echo(json.dumps({"url": address, **review.state()}))
        else:
            click.echo(f"Review at {address}")
        if not quiet:
            click.echo("Decisions are saved at once. Ctrl-C ends the review.", err=True)
        if not no_open:
            # Some browsers keep their caller waiting, and the server has yet to start.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    decided = serve_review(run, manifest=manifest, port=port, ready=ready, wait=queue(wait))
    if not quiet:
        click.echo(f"{decided} rows decided, in {run / 'decisions.jsonl'}", err=True)


def _take_over(
    run: Path, manifest: Path | None, annotations: Path, *, wait: bool, as_json: bool
) -> None:
    from labelclean.review.label_studio import import_annotations

    taken, same = import_annotations(run, annotations, manifest, wait=queue(wait))
    if as_json:
        click.echo(json.dumps({"imported": taken, "known": same}))
    else:
        click.echo(f"{taken} decisions taken over from {annotations}, {same} known already")
