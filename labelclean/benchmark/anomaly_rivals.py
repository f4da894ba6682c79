"""What cleanvision and cleanlab's Datalab say about the same pictures and features."""

import contextlib
import io
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from labelclean.arrays import Floats, Ints, Singles
from labelclean.errors import ConfigError

_NEEDED = "this comparison needs more packages: pip install 'labelclean[benchmark]'."


def cleanvision_groups(folder: Path) -> tuple[list[Ints], float]:
    """Group the pictures of a folder, which are named by number, as cleanvision does by default.

    Returns:
        The groups, and seconds.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        from cleanvision import Imagelab  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(_NEEDED) from error
    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        lab = Imagelab(data_path=str(folder))
        lab.find_issues({"exact_duplicates": {}, "near_duplicates": {}}, n_jobs=1, verbose=False)
    sets = [
        [int(Path(name).stem) for name in names]
        for kind in ("exact_duplicates", "near_duplicates")
        for names in lab.info[kind]["sets"]
    ]
    return _joined(sets), time.perf_counter() - began


def datalab_groups(features: Singles, label: Ints) -> tuple[list[Ints], float]:
    """Group rows by their features as Datalab does by default, and say how long it took."""
    began = time.perf_counter()
    lab = _datalab(features, label, "near_duplicate")
    found = lab.get_issues("near_duplicate")
    sets = [
        [row, *map(int, others)]
        for row, (flagged, others) in enumerate(
            zip(found["is_near_duplicate_issue"], found["near_duplicate_sets"], strict=True)
        )
        if flagged
    ]
    return _joined(sets), time.perf_counter() - began


def datalab_outliers(features: Singles, label: Ints) -> Floats:
    """(N,) how strange Datalab holds each row to be, by features; higher is stranger."""
    found = _datalab(features, label, "outlier").get_issues("outlier")
    strange: Floats = 1 - found["outlier_score"].to_numpy().astype(np.float64)
    return strange


def _datalab(features: Singles, label: Ints, kind: str) -> Any:
    try:
        from cleanlab import Datalab  # noqa: PLC0415

        lab = Datalab({"label": label.tolist()}, label_name="label", verbosity=0)
    except ImportError as error:
        raise ConfigError(_NEEDED) from error
    with contextlib.redirect_stdout(io.StringIO()):
        lab.find_issues(features=features, issue_types={kind: {}})
    return lab


def _joined(sets: list[list[int]]) -> list[Ints]:
    """Join sets that share a row."""
    if not sets:
        return []
    pairs = np.array([(rows[0], other) for rows in sets for other in rows])
    size = int(pairs.max()) + 1
    linked = sparse.coo_array((np.ones(len(pairs), bool), pairs.T), (size, size))
    part = connected_components(linked, directed=False)[1]
    rows = np.unique(pairs)
    order = rows[np.argsort(part[rows], kind="stable")]
    edges = np.flatnonzero(np.diff(part[order])) + 1
    return [np.asarray(group, np.int64) for group in np.split(order, edges)]
