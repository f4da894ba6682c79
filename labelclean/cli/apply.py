"""`labelclean apply`: put a patch into the data it was made for."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labelclean.cli.options import budget_option, hold_target, output_options, wait_option
from labelclean.cli.text import printable

if TYPE_CHECKING:
    from labelclean.outputs.patch_file import Patch

_PATH = click.Path(path_type=Path)
_SHOWN = 10


@click.command("apply", short_help="Put a patch into a table or image folder, or take it out.")
@click.argument("patch", type=_PATH)
@click.argument("target", type=_PATH)
@click.option("--dry-run", is_flag=True, help="Check and say what would change; change nothing.")
@click.option("--revert", is_flag=True, help="Take the patch out again.")
@click.option("--label-col", help="Column with the label.")
@budget_option
@wait_option
@output_options
def command(
    *,
    patch: Path,
    target: Path,
    dry_run: bool,
    revert: bool,
    label_col: str | None,
    budget: float | None,
    wait: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Change TARGET, the audited table or image folder, as PATCH says, in place.

    PATCH is a .patch.jsonl of `labelclean export`. In text tables only label cells change, and
    --revert gives the very bytes back; of .parquet and .npz a copy TARGET.orig is kept for that.
    In an image folder pictures move to the folder of their new class, left out ones to a hidden
    folder.
    """
    from labelclean.outputs.patch_file import read_patch
    from labelclean.workflows.apply import apply_to

    hold_target(target, "apply", wait)
    read = read_patch(patch)
    done = apply_to(
        read, target, revert=revert, dry_run=dry_run, label_col=label_col, budget=budget or 1.0
    )
    facts = {
        "target": target.as_posix(),
        "relabelled": done.relabelled,
        "left_out": done.left_out,
        "dry_run": dry_run,
        "reverted": revert,
        "original_bytes": done.original_bytes if revert else None,
    }
    if as_json:
        click.echo(json.dumps(facts))
        return
    if dry_run and not quiet:
        _preview(read, revert)
    would = "would be " if dry_run else ""
    if revert:
        state = "as it was audited" if done.original_bytes else "changed elsewhere since the audit"
        click.echo(f"{target}: {len(read.lines)} rows {would}restored; the rest is {state}")
    else:
        click.echo(
            f"{target}: {done.relabelled} rows {would}relabelled, {done.left_out} {would}left out"
        )


def _preview(patch: "Patch", revert: bool) -> None:
    for line in patch.lines[:_SHOWN]:
        old, new = str(line.old), "left out" if line.new is None else str(line.new)
        before, after = (new, old) if revert else (old, new)
        click.echo(f"  row {line.row}  {printable(before)} -> {printable(after)}", err=True)
    if len(patch.lines) > _SHOWN:
        click.echo(f"  and {len(patch.lines) - _SHOWN} more", err=True)
