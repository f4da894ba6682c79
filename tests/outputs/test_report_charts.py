"""The numbers behind the page's charts, by hand."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelclean.outputs.report_charts import (
    WIDEST,
    curves,
    histogram,
    matrix_chart,
    stage_histograms,
)
from labelclean.outputs.report_records import (
    EpochHistory,
    read_epoch_history,
    read_neighbours,
    with_shown,
)
from labelclean.records.records import Records


def test_histogram_counts_shares_within_each_group():
    values = np.array([0.0, 0.01, 0.99, 1.0, np.nan])
    groups = {"a": np.array([1, 1, 1, 0, 1], bool), "b": np.array([0, 0, 0, 1, 0], bool)}
    chart = histogram("t", values, groups)
    assert [line["count"] for line in chart["series"]] == [3, 1]
    first, second = (line["values"] for line in chart["series"])
    assert first[0] == pytest.approx(2 / 3, abs=1e-4)
    assert first[-1] == pytest.approx(1 / 3, abs=1e-4)
    assert second[-1] == 1
    assert len(first) == 25
    assert histogram("t", np.full(5, np.nan), groups) is None


def test_a_matrix_is_its_cells():
    found = matrix_chart(np.array([[8, 2], [0, 5]]), counts=True)
    assert found == {
        "classes": [0, 1],
        "cells": [[0, 0, 8], [0, 1, 2], [1, 1, 5]],
        "totals": [10, 5],
        "counts": True,
    }
    shares = matrix_chart(np.array([[0.99999, 0.00001], [0.25, 0.75]]), counts=False)
    assert shares["cells"] == [[0, 0, 1.0], [1, 0, 0.25], [1, 1, 0.75]]


def test_of_many_classes_the_most_confused_are_drawn():
    size = WIDEST + 20
    counts = np.diag(np.full(size, 9))
    counts[size - 1, 3] = 4
    found = matrix_chart(counts, counts=True)
    assert len(found["classes"]) == WIDEST
    assert {3, size - 1} <= set(found["classes"])
    place = found["classes"].index(size - 1), found["classes"].index(3)
    assert [*place, 4] in found["cells"]


def test_curves_are_means_over_rows():
    history = EpochHistory(
        row=np.arange(3),
        label=np.array([0, 1, 1]),
        loss=np.array([[1.0, 0.5], [3.0, np.nan], [2.0, 1.5]], np.float32),
        predicted=np.array([[0, 0], [0, -1], [1, 0]], np.int32),
        p_given=np.array([[0.5, 0.6], [0.1, np.nan], [0.3, 0.8]], np.float32),
        stages=(1, 2),
        attention=np.array([[0.5, 0.9], [0.5, 0.1], [0.5, 0.2]], np.float32),
    )
    groups = {"kept": np.array([1, 0, 1], bool), "flagged": np.array([0, 1, 0], bool)}
    loss, right, given = curves(history, groups, np.array([0, 0, -2]))
    assert loss["series"][0]["values"] == [2.0, 1.0]
    assert right["series"][0]["values"] == [pytest.approx(2 / 3, abs=1e-4), 0.5]
    assert right["series"][1]["values"] == [1.0, 1.0]
    assert [line["name"] for line in given["series"]] == ["kept", "flagged"]
    assert given["series"][0]["values"] == [pytest.approx(0.4), pytest.approx(0.7)]
    assert given["series"][1]["values"] == [pytest.approx(0.1), None]
    early, late = stage_histograms(history, groups)
    assert early["title"] == "after epoch 1"
    assert late["series"][1]["values"][2] == 1


def test_neighbours_and_stages_are_stored_and_read_again(tmp_path):
    attention = np.linspace(0, 1, 14, dtype=np.float32).reshape(7, 2)
    label = np.array([1, 0])
    records = Records(label=label, probs=np.eye(2, dtype=np.float32), attention=attention)
    near = np.arange(14).reshape(2, 7)
    near[1, 3:] = -1
    table = pa.table({"row": [4, 9], "label": label})
    pq.write_table(with_shown(table, near, records), tmp_path / "r.parquet")
    history = read_epoch_history(tmp_path / "r.parquet")
    assert history.stages == (1, 4, 7)
    np.testing.assert_array_equal(history.attention, attention[[0, 3, 6]].T)
    assert history.loss is None
    labels = np.arange(14) % 2
    found = read_neighbours(tmp_path / "r.parquet", [9], labels, ("even", "odd"))
    assert found == {9: [(7, "odd"), (8, "even"), (9, "odd")]}
    pq.write_table(with_shown(table, None, None), tmp_path / "r.parquet")
    assert read_neighbours(tmp_path / "r.parquet", [9], labels, ("even", "odd")) == {}
    assert read_epoch_history(tmp_path / "r.parquet").attention is None
