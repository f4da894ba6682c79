"""Numbers behind the page's charts: histograms, curves over the epochs, and matrices."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Probs
from labelclean.outputs.report_records import EpochHistory

BINS = 25
WIDEST = 100  # classes a drawn matrix can hold
SMALLEST = 0.0005

RowGroups = Mapping[str, NDArray[np.bool_]]
"""Name of a group to the rows in it."""
Chart = dict[str, Any]


def histogram(title: str, values: Probs, groups: RowGroups) -> Chart | None:
    """Give the distribution of values in 0 to 1 within each group; None without any."""
    series = []
    for name, members in groups.items():
        part = values[members]
        part = part[~np.isnan(part)]
        if len(part):
            counts = np.histogram(np.clip(part, 0, 1), BINS, (0, 1))[0]
            shares = [round(share, 5) for share in (counts / len(part)).tolist()]
            series.append({"name": name, "count": len(part), "values": shares})
    return {"title": title, "series": series} if series else None


def stage_histograms(history: EpochHistory, groups: RowGroups) -> list[Chart]:
    """Give the distribution of the attention weight at each recorded stage of training."""
    if history.attention is None:
        return []
    charts = [
        histogram(f"after epoch {epoch}", history.attention[:, at], groups)
        for at, epoch in enumerate(history.stages)
    ]
    return [chart for chart in charts if chart is not None]


def curves(history: EpochHistory, groups: RowGroups, true: NDArray[np.int64] | None) -> list[Chart]:
    """Give what training did over the epochs.

    Args:
        history: n rows.
        groups: Groups of these rows.
        true: (n,) true classes, negative where not known; None: none are.
    """
    found = []
    if history.loss is not None:
        found.append(_curve("Mean loss", {"loss": _means(history.loss)}))
    if history.predicted is not None:
        seen = np.where(history.predicted < 0, np.nan, 1.0)
        right = {"given label": _means(seen * (history.predicted == history.label[:, None]))}
        if true is not None and (true >= 0).any():
            known = true >= 0
            hits = seen[known] * (history.predicted[known] == true[known, None])
            right["true label"] = _means(hits)
        found.append(_curve("Agreement of the prediction with the", right))
    if history.p_given is not None:
        parts = {name: history.p_given[members] for name, members in groups.items()}
        lines = {name: _means(part) for name, part in parts.items() if len(part)}
        found.append(_curve("Mean p(y|x) of the given label", lines))
    return [chart for chart in found if len(chart["series"]) and chart["length"]]


def matrix_chart(values: NDArray[np.generic], *, counts: bool) -> Chart:
    """Give a (C, C) matrix as its cells that are not (nearly) zero.

    Of more classes than a drawing can hold, those with the most beside the diagonal are taken.

    Args:
        values: (C, C).
        counts: Whether they are counts rather than shares.
    """
    table = values.astype(np.float64)
    size = len(table)
    chosen = np.arange(size)
    if size > WIDEST:
        beside = table.sum(axis=0) + table.sum(axis=1) - 2 * np.diag(table)
        chosen = np.sort(np.argsort(-beside, kind="stable")[:WIDEST])
    part = table[np.ix_(chosen, chosen)]
    rows, columns = np.nonzero(part >= (1 if counts else SMALLEST))
    cells = [
        [int(row), int(column), int(value) if counts else round(float(value), 4)]
        for row, column, value in zip(rows, columns, part[rows, columns], strict=True)
    ]
    totals = table.sum(axis=1)[chosen]
    return {
        "classes": chosen.tolist(),
        "cells": cells,
        "totals": [int(total) if counts else round(float(total), 4) for total in totals],
        "counts": counts,
    }


def _means(values: Probs) -> list[float | None]:
    """Give the mean over rows for each epoch; None where nothing was seen."""
    seen = ~np.isnan(values)
    count = seen.sum(axis=0)
    total = np.where(seen, values, 0).sum(axis=0, dtype=np.float64)
    means: Sequence[float] = (total / np.maximum(count, 1)).tolist()
    return [round(mean, 5) if n else None for mean, n in zip(means, count.tolist(), strict=True)]


def _curve(title: str, lines: Mapping[str, list[float | None]]) -> Chart:
    series = [{"name": name, "values": values} for name, values in lines.items()]
    return {"title": title, "series": series, "length": len(series[0]["values"]) if series else 0}
