"""report.html: one self-contained page that opens offline."""

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass

import jinja2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from labelclean.errors import DataError
from labelclean.result import KEEP, UNREADABLE, Audit

SHOWN = 200
PICTURED = 60
SIDE = 96

Load = Callable[[int], NDArray[np.uint8]]
"""Row to pixels (H, W, 3); raises DataError where the picture cannot be read."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """One line of the gallery, everything as text."""

    rank: int
    row: int
    sample_id: str
    path: str
    given: str
    suggested: str
    action: str
    p_error: str
    reason: str
    picture: str | None


def render_report(audit: Audit, figures: dict[str, bytes], load: Load | None) -> bytes:
    """Render the page.

    Args:
        audit: What to show.
        figures: Title to PNG.
        load: Reads a picture; None where the samples are no pictures.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("labelclean.outputs"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html").render(
        name=audit.manifest.source.name,
        counts=audit.counts(),
        rate=audit.noise_rate,
        interval=audit.noise_interval,
        diagnosis=audit.diagnosis,
        figures={title: _inline(png, "png") for title, png in figures.items()},
        classes=_class_rows(audit),
        quality=audit.quality,
        suspects=_suspects(audit, load),
    )
    return page.encode("utf-8", errors="replace")


def _suspects(audit: Audit, load: Load | None) -> list[Suspect]:
    names = audit.manifest.classes
    flagged = np.flatnonzero((audit.action != KEEP) & (audit.action != UNREADABLE))[:SHOWN]
    found = []
    for place, at in enumerate(flagged):
        row = int(audit.row[at])
        found.append(
            Suspect(
                rank=int(at) + 1,
                row=row,
                sample_id=str(audit.manifest.sample_id[row]),
                path=str(audit.manifest.path[row]),
                given=str(names[audit.given[at]]),
                suggested=str(names[audit.suggested[at]]),
                action=str(audit.action[at]),
                p_error=f"{audit.p_error[at]:.1%}",
                reason=str(audit.reason[at]),
                picture=_thumbnail(load, row) if load is not None and place < PICTURED else None,
            )
        )
    return found


def _thumbnail(load: Load, row: int) -> str | None:
    try:
        image = Image.fromarray(load(row))
    except DataError:
        return None  # it was readable when it was audited; the row is still listed
    if max(image.size) < SIDE // 2:
        factor = SIDE // max(image.size)
        image = image.resize(
            (image.width * factor, image.height * factor), Image.Resampling.NEAREST
        )
    image.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=80)
    return _inline(buffer.getvalue(), "jpeg")


def _inline(content: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _class_rows(audit: Audit) -> list[tuple[str, int, str]]:
    if audit.noise is None:
        return []
    size = len(audit.manifest.classes)
    counts = np.bincount(audit.given, minlength=size)
    order = np.argsort(-np.nan_to_num(audit.noise.class_rate), kind="stable")
    return [
        (str(audit.manifest.classes[c]), int(counts[c]), f"{audit.noise.class_rate[c]:.1%}")
        for c in order[:SHOWN]
        if counts[c]
    ]
