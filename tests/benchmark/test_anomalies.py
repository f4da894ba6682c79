"""What the benchmark of anomalies plants, and how it counts what is found."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from labelclean.benchmark.anomalies import AnomalyCase, duplicate_score
from labelclean.benchmark.anomaly_planting import COPIES, plant_anomalies
from labelclean.data.read import read_manifest
from labelclean.data.scan import scan_images
from labelclean.data.sources import open_source
from labelclean.errors import DataError
from labelclean.workflows.duplicates import find_duplicates

ROWS = 60


def drawn(folder, rows=ROWS, seed=0):
    """Pictures with detail at every scale, which no two share."""
    rng = np.random.default_rng(seed)
    (folder / "images").mkdir(parents=True)
    lines = []
    for row in range(rows):
        layers = [
            np.asarray(
                Image.fromarray(rng.integers(0, 256, (cells, cells), dtype=np.uint8)).resize(
                    (96, 80), Image.Resampling.BICUBIC
                ),
                float,
            )
            for cells in (4, 9, 20)
        ]
        pixels = np.stack([sum(layers) / 3] * 3, axis=2).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"images/{row}.png")
        lines.append((f"images/{row}.png", f"class {row % 3}"))
    pd.DataFrame(lines, columns=["image", "label"]).to_csv(folder / "data.csv", index=False)
    return read_manifest(folder / "data.csv")


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("anomalies")
    own, other = drawn(folder / "own"), drawn(folder / "other", 10, seed=1)
    made = plant_anomalies(own, [other], folder / "planted", rate=0.1, copies=20, leaks=8, seed=3)
    return own, other, made


def test_what_is_planted_is_what_is_said(planted):
    own, other, made = planted
    table = read_manifest(made.table)
    assert len(table) == ROWS + 20 + 8 == len(made.row)
    assert (made.row[made.foreign] == -1).all()
    assert len(made.foreign) == 6
    was, now, strange = open_source(own), open_source(table), open_source(other)
    for row in made.foreign.tolist():
        assert now.read(row) in {strange.read(at) for at in range(10)}
    ordinary = np.setdiff1d(np.arange(ROWS), made.foreign)
    assert all(now.read(row) == was.read(row) for row in ordinary.tolist())
    assert (table.label[:ROWS] == own.label).all()
    assert (table.label[made.copy] == own.label[made.source]).all()
    assert not set(made.source) & set(made.foreign)
    assert np.bincount(made.way).tolist() == [5] * len(COPIES)
    assert (table.split[made.leak] == "test").all()
    assert (table.split[: made.leak[0]] == "train").all()
    same = [now.read(a) == now.read(b) for a, b in zip(made.leak, made.leaked, strict=True)]
    assert same == made.exact.tolist()
    assert sum(same) == 4


def test_the_planted_copies_and_leaks_are_found(planted):
    _, _, made = planted
    table = read_manifest(made.table)
    source = open_source(table)
    same = find_duplicates(scan_images(source, workers=1), source)
    found = duplicate_score(made, "labelclean", same.members(), AnomalyCase(copies=20))[0].numbers
    assert found["recall"] >= 0.95
    assert found["precision"] == 1.0
    leaks = same.leaks(table.split, len(table))
    assert (leaks[made.leaked[made.exact]] >= 0).all()
    assert (leaks[made.leaked] >= 0).mean() >= 0.95


def test_pairs_by_hand(planted):
    _, _, made = planted
    one, other = made.copy[0], made.copy[1]
    apart = [row for row in range(ROWS) if row not in set(made.source)]
    groups = [
        np.array([made.source[0], one]),
        np.array([other, apart[0]]),  # wrong
        np.array(apart[1:3]),  # nobody knows
        np.array([apart[3], made.leak[0]]),  # another question
    ]
    found = duplicate_score(made, "somebody", groups, AnomalyCase(copies=20), 2.0)[0].numbers
    assert found["recall"] == 1 / 20
    assert found["precision"] == 1 / 2
    assert found["other pairs"] == 1
    assert found["seconds"] == 2.0


def test_what_cannot_be_planted_is_refused(planted, tmp_path):
    own, other, _ = planted
    with pytest.raises(DataError, match="name another manifest with --foreign"):
        plant_anomalies(own, [], tmp_path / "a", rate=0.1, copies=0, leaks=0, seed=0)
    with pytest.raises(DataError, match="60 rows are too few to plant 70 in"):
        plant_anomalies(own, [other], tmp_path / "b", rate=0, copies=40, leaks=30, seed=0)
