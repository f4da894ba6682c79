"""What a manifest and a look at its pictures amount to, as plain facts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.data.doubts import label_doubts
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
        near_duplicates: Rows that show the same picture and are not all of one content, such as
            re-encoded, scaled, slightly cropped or mirrored ones; one tuple for each picture.
        conflicts: Those of both whose rows do not all carry one label.
        leaks: Those of both whose rows are not all of one split.
        problems: Why the manifest cannot be used; empty if it can.
        warnings: What looks odd about its labels and folders.
    """

    manifest: str
    digest: str
    rows: int
    readable: int
    classes: tuple[tuple[Label, int], ...]
    splits: Mapping[str, int]
    unreadable: tuple[Unreadable, ...]
    duplicates: tuple[tuple[int, ...], ...]
    near_duplicates: tuple[tuple[int, ...], ...]
    conflicts: tuple[tuple[int, ...], ...]
    leaks: tuple[tuple[int, ...], ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def summarize(
    manifest: Manifest,
    scan: Scan,
    pictures: Sequence[NDArray[np.int64]] = (),
) -> Summary:
    """Put the facts together; N rows in both.

    Args:
        manifest: What was read.
        scan: A look at every row.
        pictures: Rows that show the same picture, whatever their content, a group each.
    """
    counts = np.bincount(manifest.label[manifest.label >= 0], minlength=len(manifest.classes))
    groups = scan.duplicates()
    known = {tuple(group.tolist()) for group in groups}
    near = [group for group in pictures if tuple(group.tolist()) not in known]
    inside = {row for group in near for row in group.tolist()}
    # A content that is part of a larger group is told of once.
    whole = [*near, *(group for group in groups if int(group[0]) not in inside)]
    whole.sort(key=lambda group: int(group[0]))
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
        duplicates=_plain(groups),
        near_duplicates=_plain(near),
        conflicts=_plain(_mixed(whole, manifest.label)),
        leaks=() if manifest.split is None else _plain(_mixed(whole, manifest.split.astype(str))),
        problems=_problems(manifest, scan),
        warnings=label_doubts(manifest),
    )


def _mixed(
    groups: Iterable[NDArray[np.int64]], value: NDArray[np.generic]
) -> list[NDArray[np.int64]]:
    """Give the groups whose rows do not all have the same value; value (N,)."""
    return [group for group in groups if len(np.unique(value[group])) > 1]


def _plain(groups: Iterable[NDArray[np.int64]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(group.tolist()) for group in groups)


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
