"""What a manifest and a look at its pictures amount to, as plain facts."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from labelclean.data.manifest import Label, Manifest
from labelclean.data.scan import Scan


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row whose picture cannot be used."""

    row: int
    sample_id: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What `labelclean check` tells.

    Args:
        manifest: Where the manifest was read from.
        digest: SHA-256 of what was read.
        rows: Number of rows.
        readable: Number of rows whose picture decodes.
        classes: Rows of each class, in class order.
        splits: Rows of each split; empty if the manifest has no such column.
        unreadable: The rows that do not decode, in order.
        duplicates: Rows of identical content, one tuple for each content.
        conflicts: Those of `duplicates` whose rows do not all carry one label.
        problems: Why the manifest cannot be used; empty if it can.
    """

    manifest: str
    digest: str
    rows: int
    readable: int
    classes: tuple[tuple[Label, int], ...]
    splits: Mapping[str, int]
    unreadable: tuple[Unreadable, ...]
    duplicates: tuple[tuple[int, ...], ...]
    conflicts: tuple[tuple[int, ...], ...]
    problems: tuple[str, ...]


def summarize(manifest: Manifest, scan: Scan) -> Summary:
    """Put the facts together; N rows in both."""
    counts = np.bincount(manifest.label[manifest.label >= 0], minlength=len(manifest.classes))
    groups = scan.duplicates()
    conflicts = [group for group in groups if len(np.unique(manifest.label[group])) > 1]
    return Summary(
        manifest=str(manifest.source),
        digest=manifest.digest,
        rows=len(manifest),
        readable=int(scan.readable.sum()),
        classes=tuple(zip(manifest.classes, counts.tolist(), strict=True)),
        splits=_splits(manifest),
        unreadable=tuple(
            Unreadable(
                int(row), str(manifest.sample_id[row]), str(manifest.path[row]), scan.reason[row]
            )
            for row in np.flatnonzero(~scan.readable)
        ),
        duplicates=tuple(tuple(group.tolist()) for group in groups),
        conflicts=tuple(tuple(group.tolist()) for group in conflicts),
        problems=_problems(manifest, scan),
    )


def _splits(manifest: Manifest) -> dict[str, int]:
    if manifest.split is None:
        return {}
    names, counts = np.unique(manifest.split.astype(str), return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _problems(manifest: Manifest, scan: Scan) -> tuple[str, ...]:
    left = np.unique(manifest.label[scan.readable])
    if not scan.readable.any():
        return (f"none of the {len(manifest)} rows has a readable image",)
    if len(left) < 2:
        names = ", ".join(repr(manifest.classes[code]) for code in left)
        return (f"the readable rows hold only one class, {names}; at least two are needed",)
    return ()
