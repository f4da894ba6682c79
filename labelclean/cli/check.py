"""`labelclean check`: read a manifest, look at every image, say what is there."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from labelclean.cli import ANSWERED
from labelclean.cli.options import Shared, data_settings, recipe_options, shared_options
from labelclean.cli.text import printable
from labelclean.errors import DataError
from labelclean.options import progress_bar

if TYPE_CHECKING:
    from labelclean.data.settings import DataSettings
    from labelclean.data.summary import Summary

_SHOWN = 10


@click.command("check")
@click.argument("manifest")
@recipe_options
@shared_options
def command(manifest: str, recipe: str | None, overrides: tuple[str, ...], shared: Shared) -> None:
    """Read MANIFEST, look at every image and print a summary.

    MANIFEST is a .csv, .tsv, .parquet, .jsonl or .npz file or a folder of images. The exit code is
    0 if it can be used and 3 if not. Rows whose image cannot be read are listed; they stay in the
    manifest and are left out of training.
    """
    from labelclean.recipe import load_recipe

    settings = data_settings(load_recipe(recipe, overrides).data, shared)
    summary = _summary(manifest, settings, shared.quiet)
    click.echo(_as_json(summary) if shared.as_json else _as_text(summary))
    if summary.problems:
        click.get_current_context().meta[ANSWERED] = shared.as_json
        raise DataError(
            f"{manifest} cannot be used: {'; '.join(summary.problems)}. "
            "Correct the rows listed above, or check --image-root, --image-col and --label-col."
        )


def _summary(manifest: str, settings: "DataSettings", quiet: bool) -> "Summary":
    from labelclean.data.images import ImageLimits
    from labelclean.data.read import read_manifest
    from labelclean.data.scan import scan_features, scan_images
    from labelclean.data.sources import open_source
    from labelclean.data.summary import summarize
    from labelclean.workflows.duplicates import find_duplicates

    table = read_manifest(
        manifest,
        image_col=settings.image_col,
        label_col=settings.label_col,
        image_root=settings.image_root,
        allow_outside_root=settings.allow_outside_root,
        limit=settings.limit,
        budget=settings.budget,
    )
    if table.arrays is not None and not table.has_images:
        return summarize(table, scan_features(table.arrays))
    source = open_source(table, ImageLimits(settings.max_bytes, settings.max_pixels))
    with progress_bar("reading images", shown=False if quiet else None) as progress:
        scan = scan_images(source, workers=settings.workers, progress=progress)
    return summarize(table, scan, find_duplicates(scan, source).members())


def _as_json(summary: "Summary") -> str:
    facts = asdict(summary)
    facts["classes"] = [{"label": label, "rows": rows} for label, rows in summary.classes]
    facts["usable"] = not summary.problems
    return json.dumps(facts, indent=2)


def _as_text(summary: "Summary") -> str:
    lines = [
        f"manifest    {printable(summary.manifest)}",
        f"digest      {summary.digest}",
        f"rows        {summary.rows}",
        f"classes     {len(summary.classes)}: {_counts(summary.classes)}",
    ]
    if summary.splits:
        lines.append(f"splits      {_counts(tuple(summary.splits.items()))}")
    lines.append(f"readable    {summary.readable}")
    lines.append(f"unreadable  {len(summary.unreadable)}")
    lines += [
        f"  row {entry.row}  {printable(entry.path)}: {printable(entry.reason)}"
        for entry in summary.unreadable[:_SHOWN]
    ]
    if len(summary.unreadable) > _SHOWN:
        lines.append(f"  and {len(summary.unreadable) - _SHOWN} more; --json lists all")
    lines += _groups("duplicates", "the same content", summary.duplicates)
    if summary.near_duplicates:
        lines += _groups("near", "nearly the same picture", summary.near_duplicates)
    lines += _groups("conflicts", "the same content under different labels", summary.conflicts)
    if summary.splits:
        lines += _groups("leaks", "the same picture in different splits", summary.leaks)
    lines += [f"warning     {printable(said)}" for said in summary.warnings]
    lines.append(f"usable      {'no' if summary.problems else 'yes'}")
    return "\n".join(lines)


def _counts(counts: tuple[tuple[object, int], ...]) -> str:
    """Name the most frequent ones first; equals stay in their order."""
    ranked = sorted(counts, key=lambda entry: -entry[1])
    shown = ", ".join(f"{printable(str(name))} {rows}" for name, rows in ranked[:_SHOWN])
    return shown if len(ranked) <= _SHOWN else f"{shown} and {len(ranked) - _SHOWN} more"


def _groups(title: str, meaning: str, groups: tuple[tuple[int, ...], ...]) -> list[str]:
    rows = sum(len(group) for group in groups)
    lines = [f"{title:<11} {rows} rows in {len(groups)} groups with {meaning}"]
    for group in groups[:3]:
        more = "" if len(group) <= _SHOWN else f" and {len(group) - _SHOWN} more"
        lines.append(f"  rows {', '.join(map(str, group[:_SHOWN]))}{more}")
    return lines
