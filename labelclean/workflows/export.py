"""`labelclean export`: what leaves a run as a table, image folder or patch; the original stays."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from labelclean.atomic import remove
from labelclean.correction.outcome import ExportPolicy, Outcome, apply_policy
from labelclean.data.manifest import Manifest
from labelclean.data.places import Place, RemotePath
from labelclean.data.tables import METADATA_KEY
from labelclean.data.textedit import (
    TEXT_FORMS,
    TextLayout,
    cell_text,
    relabelled,
    text_layout,
)
from labelclean.data.textfiles import format_text_table
from labelclean.data.write import put_bytes, write_manifest
from labelclean.errors import ConfigError
from labelclean.outputs.patch_file import Line, Patch, format_patch
from labelclean.runs.again import findings_with
from labelclean.runs.decisions_file import read_decisions
from labelclean.runs.reading import OpenedRun

PATCH = ".patch.jsonl"
_FOLDER_MARK = "metadata.parquet"


@dataclass(frozen=True, slots=True)
class Form:
    """How to write.

    Args:
        raw_csv: Leave cells that a spreadsheet would run as they are.
        link: Link pictures instead of copying them.
        evidence: Add our four columns.
        overwrite: Replace what is there.
    """

    raw_csv: bool = False
    link: bool = False
    evidence: bool = False
    overwrite: bool = False


def decide_rows(
    run: OpenedRun,
    policy: str | None = None,
    min_confidence: float | None = None,
    decisions: Path | None = None,
    drop: tuple[str, ...] = (),
) -> Outcome:
    """Apply a policy and people's decisions to what a run found.

    Args:
        run: The run.
        policy: See `ExportPolicy`.
        min_confidence: See `ExportPolicy`.
        decisions: decisions.jsonl; what it tells about other rows counts as well. None: nothing.
        drop: See `ExportPolicy`.

    Raises:
        DataError: A file of the run is missing or belongs to another, or is no decisions.
        ConfigError: The policy cannot be meant.
    """
    people = {} if decisions is None else read_decisions(decisions, run.manifest)
    choice = ExportPolicy(policy, min_confidence, people, drop)
    return apply_policy(run.manifest, findings_with(run, decisions), choice)


def write_export(run: OpenedRun, outcome: Outcome, target: Place, form: Form) -> None:
    """Write the outcome in the form the name of `target` asks for.

    Raises:
        ConfigError: The target is the input, part of the run, or there already.
        OutputError: The form cannot hold the manifest.
    """
    refuse_target(run, target, overwrite=form.overwrite)
    if target.name.lower().endswith(PATCH):
        put_bytes(target, format_patch(make_patch(run, outcome)))
        return
    content = None if form.evidence else _in_place(run.manifest, outcome, target, form)
    if content is not None:
        put_bytes(target, content)
        return
    manifest = outcome.corrected(evidence=form.evidence)
    if isinstance(target, RemotePath) or not target.is_dir() or not any(target.iterdir()):
        write_manifest(manifest, target, raw_csv=form.raw_csv, link=form.link)
        return
    # The old folder goes as a whole, by its name: half of it must never stand where it stood.
    aside = target.with_name(f".{target.name}.aside")
    remove(aside)
    write_manifest(manifest, aside / "new", link=form.link)
    target.replace(aside / "old")
    (aside / "new").replace(target)
    remove(aside)


def make_patch(run: OpenedRun, outcome: Outcome) -> Patch:
    """Describe what differs between the audited manifest and the outcome."""
    manifest = run.manifest
    layout = _layout(manifest)
    lines = []
    for row in sorted([*outcome.moved.tolist(), *outcome.dropped.tolist()]):
        old = manifest.classes[manifest.label[row]]
        new = manifest.classes[outcome.label[row]] if outcome.kept[row] else None
        text = None
        if layout is not None:
            record = layout.records[row]
            text = record.decode() if new is None else cell_text(layout, record)
            if new is not None and text == layout.render(old, layout.render(new, text)):
                text = None
        lines.append(Line(row, str(manifest.sample_id[row]), old, new, text))
    return Patch(
        manifest.source.name, manifest.digest, len(manifest), manifest.classes, tuple(lines)
    )


def refuse_target(run: OpenedRun, target: Place, *, overwrite: bool) -> None:
    """Raise ConfigError for a target that must not be written."""
    place, source = target.resolve(), run.manifest.source.resolve()
    if place == source or (source.is_dir() and source in place.parents):
        raise ConfigError(
            f"{target} is the audited data or lies inside it, which is never changed; name another "
            "place."
        )
    if place == run.folder.resolve() or (place.parent == run.folder.resolve() and place.exists()):
        raise ConfigError(f"{target} is part of the run; name another place.")
    if isinstance(target, RemotePath):
        if target.suffix == "" or not target.exists():
            return
    elif target.is_dir() and any(target.iterdir()):
        if overwrite and not _is_ours(target):
            raise ConfigError(f"{target} is not an image folder of labelclean; name a new folder.")
    elif not target.exists() or target.is_dir():
        return
    if not overwrite:
        raise ConfigError(f"{target} exists; pass --overwrite to replace it, or name another.")


def _is_ours(folder: Path) -> bool:
    import pyarrow.parquet as pq  # noqa: PLC0415

    mark = folder / _FOLDER_MARK
    return mark.is_file() and METADATA_KEY in (pq.read_schema(mark).metadata or {})


def _layout(manifest: Manifest) -> TextLayout | None:
    if manifest.source.suffix.lower() not in TEXT_FORMS or manifest.source.is_dir():
        return None
    data = manifest.source.read_bytes()
    if hashlib.sha256(data).hexdigest() != manifest.digest:
        return None
    return text_layout(manifest, data)


def _in_place(manifest: Manifest, outcome: Outcome, target: Place, form: Form) -> bytes | None:
    """Edit the label cells of the input's own text; None where the table must be written anew."""
    suffix, root = target.suffix.lower(), manifest.image_root
    if suffix != manifest.source.suffix.lower() or not outcome.kept.any():
        return None
    moved = root is not None and root.resolve() != target.parent.resolve()
    if manifest.image_col is not None and moved:
        return None  # in another folder the paths must be written anew
    layout = _layout(manifest)
    if layout is None:
        return None
    if suffix != ".jsonl" and not form.raw_csv:
        table = outcome.corrected(evidence=False).table
        if format_text_table(table, ",", raw=True) != format_text_table(table, ",", raw=False):
            return None
    labels = {row: manifest.classes[outcome.label[row]] for row in outcome.moved.tolist()}
    return relabelled(layout, labels, frozenset(outcome.dropped.tolist()))
