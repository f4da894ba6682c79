"""What looks odd about a manifest that can be used: said before anything dear is done."""

import itertools

import numpy as np

from labelclean.data.manifest import Manifest
from labelclean.errors import shortlist

FEW_ROWS = 3
"""Of so few rows nothing can be learned about a class."""
_SCALE = 20
"""Distinct numbers from which on labels may be a measurement."""
_SEPARATORS = "|;,"


def label_doubts(manifest: Manifest) -> tuple[str, ...]:
    """Say what makes one doubt that the labels are one class per row, and enough of each."""
    given = manifest.label[manifest.label >= 0]
    count = np.bincount(given, minlength=len(manifest.classes))
    found = (
        _small(manifest, count),
        _scale(manifest, count),
        _several(manifest),
        _even(manifest),
        _elsewhere(manifest),
    )
    return tuple(said for said in found if said)


def _small(manifest: Manifest, count: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> str:
    few = [
        f"{name!r} {rows}"
        for name, rows in zip(manifest.classes, count.tolist(), strict=True)
        if 0 < rows <= FEW_ROWS
    ]
    if not few:
        return ""
    return (
        f"{len(few)} of {len(manifest.classes)} classes have one to {FEW_ROWS} rows "
        f"({shortlist(few, 5)}): nothing can be learned about them, and a misspelt label looks "
        "just so. Merge or correct them, or add rows."
    )


def _scale(manifest: Manifest, count: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> str:
    try:
        values = [float(name) for name in manifest.classes]
    except ValueError:
        return ""
    fractions = not all(value.is_integer() for value in values)
    distinct = int(np.count_nonzero(count))
    rare = float(np.median(count[count > 0])) <= FEW_ROWS
    if distinct < _SCALE or not (fractions or rare):
        return ""
    return (
        f"column {manifest.label_col!r} holds {distinct} different numbers (from {min(values):g} "
        f"to {max(values):g}): it looks like a measurement, not like classes. Name the label "
        "column with --label-col, or turn ranges of the numbers into classes."
    )


def _several(manifest: Manifest) -> str:
    names = [str(name) for name in manifest.classes]
    for separator in _SEPARATORS:
        joined = [name for name in names if separator in name]
        parts = [tuple(part.strip() for part in name.split(separator)) for name in joined]
        # Parts that also stand alone, or in another combination, are labels of their own.
        known = set(names) - set(joined)
        twice = list(itertools.chain.from_iterable(map(set, parts)))
        shared = [
            name
            for name, its in zip(joined, parts, strict=True)
            if all(part and (part in known or twice.count(part) > 1) for part in its)
        ]
        if shared:
            return (
                f"labels such as {shared[0]!r} look like several labels in one "
                f"({len(shared)} of {len(names)} classes hold {separator!r}): each combination is "
                "taken for a class of its own. labelclean audits one label per picture; keep the "
                "main one, or audit one yes-or-no column per class."
            )
    return ""


def _even(manifest: Manifest) -> str:
    if manifest.part is None:
        return ""
    rows, total = len(manifest), manifest.part.total
    return (
        f"the rows stand class by class, so --limit {rows} took rows at even distances, "
        f"{len(manifest.classes)} classes of them, instead of the first ones: row r here is row "
        f"r * {total} // {rows} of {manifest.source.name}."
    )


def _elsewhere(manifest: Manifest) -> str:
    root, source = manifest.image_root, manifest.source
    if root is None or not manifest.has_images or manifest.image_col is None:
        return ""
    home = (source if source.is_dir() else source.parent).resolve()
    if root.resolve() == home or home in root.resolve().parents:
        return ""
    return (
        f"the pictures of {source.name} lie in {root}, outside its own folder: move or copy both "
        "together, or export to an image folder, which holds its pictures."
    )
