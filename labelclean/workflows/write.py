"""What every judgement leaves in a run folder, whether a new audit or an old one judged again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from labelclean.correction.result import Audit
from labelclean.data.images import ImageLimits
from labelclean.data.manifest import Manifest
from labelclean.data.parquet import relative_path
from labelclean.data.settings import DataSettings
from labelclean.data.sources import open_source
from labelclean.options import OpenProgress, no_progress
from labelclean.outputs.report_pictures import SIDE, Load
from labelclean.outputs.run_folder import write_results
from labelclean.outputs.truth import Truth, truth_scores, write_truth
from labelclean.runs.check import require_every_row


@dataclass(frozen=True, slots=True)
class Run:
    """A finished audit.

    Args:
        folder: The run folder.
        audit: What was found.
        facts: What run.json says.
    """

    folder: Path
    audit: Audit
    facts: Mapping[str, object]


def write_judged(
    found: Audit,
    folder: Path,
    settings: DataSettings,
    truth: Truth | None,
    progress: OpenProgress = no_progress,
) -> Audit:
    """Write everything that follows from a judgement, but not run.json.

    Args:
        found: What was found.
        folder: The run folder.
        settings: Limits of the pictures that the report shows.
        truth: True labels, where they are known.
        progress: Opens a progress bar by name.

    Raises:
        OutputError: A row of the input would be missing, or stand twice.

    Returns:
        The audit, with the scores against the truth among its facts, where that is known.
    """
    require_every_row(found, settings.audit_split)
    if truth is not None:
        write_truth(found, truth, folder)
        found = replace(found, facts={**found.facts, "truth": truth_scores(found, truth)})
    load = picture_loader(found.manifest, settings, SIDE)
    write_results(found, folder, load=load, truth=truth, progress=progress)
    return found


def picture_loader(
    manifest: Manifest, settings: DataSettings, min_side: int | None = None
) -> Load | None:
    """Give a function that reads a row's pixels; None where the samples are no pictures.

    Args:
        manifest: The samples.
        settings: Limits of what is read.
        min_side: Shorter side that is enough; None: all pixels.
    """
    if not manifest.has_images:
        return None
    source = open_source(manifest, ImageLimits(settings.max_bytes, settings.max_pixels))
    return lambda row: source.load(row, min_side)[0]


def input_facts(manifest: Manifest, folder: Path) -> dict[str, object]:
    """Say what was audited and where it is, seen from the run folder."""
    root, part = manifest.image_root, manifest.part
    return {
        "name": manifest.source.name,
        "digest": manifest.digest,
        "rows": len(manifest),
        **({} if part is None else {"even_part_of": part.total}),
        "path": relative_path(manifest.source, folder),
        "image_root": None if root is None else relative_path(root, folder),
    }
