"""Manifests made in memory, for tests of values that need neither files nor pictures."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from labelclean.data.manifest import Label, Manifest


def manifest_of(
    labels: Sequence[Label],
    *,
    verified: Sequence[bool] | None = None,
    split: Sequence[str] | None = None,
    weight: Sequence[float] | None = None,
    arrays: np.ndarray | None = None,
) -> Manifest:
    """Give a manifest of these labels, classes in their order, sample ids 0, 1, ..."""
    count = len(labels)
    classes = tuple(sorted(set(labels)))
    names = np.array([str(row) for row in range(count)], dtype=object)
    return Manifest(
        label=np.array([classes.index(one) for one in labels], np.int64),
        classes=classes,
        sample_id=names,
        path=names,
        split=None if split is None else np.array(split, dtype=object),
        verified=np.zeros(count, bool) if verified is None else np.array(verified),
        group=None,
        sample_weight=None if weight is None else np.array(weight, np.float64),
        table=pa.table({"label": list(labels)}),
        image_col=None,
        label_col="label",
        image_root=None,
        allow_outside_root=False,
        arrays=arrays,
        digest="0" * 64,
        source=Path("made.csv"),
    )
