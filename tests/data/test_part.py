"""A limit on rows that stand class by class: even distances, everywhere the same rows."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image

from labelclean import audit
from labelclean.data.part import even_part
from labelclean.data.read import read_manifest
from labelclean.runs.reading import load_run
from labelclean.runs.relabelled import read_relabelled
from planted import command, opinions

pytestmark = pytest.mark.usefixtures("plain_figures")
NAMES = ("ant", "bee", "cat", "dog")
EACH, PART = 20, 30
TAKEN = np.arange(PART) * len(NAMES) * EACH // PART


@pytest.mark.parametrize(
    ("labels", "even"),
    [
        (["a"] * 50 + ["b"] * 30, True),
        (["a"] * 40 + ["b"] * 40 + ["c"] * 40 + ["a", "b", "c"] * 5, True),
        ((["a"] * 20 + ["b"] * 20 + ["c"] * 20) * 2, True),  # two sorted tables, end to end
        (["a", "b"] * 40, False),
        ([*"ab"] * 40 + ["c"], False),  # a rare class at the end of shuffled rows
        ([5] * 50 + [7] * 30, True),
    ],
)
def test_only_rows_that_stand_class_by_class_are_taken_at_even_distances(labels, even):
    column = pa.chunked_array([labels])
    found = even_part(column, 40)
    assert (found is not None) == even
    again = even_part(column.dictionary_encode(), 40)
    assert (again is not None) == even
    if found is not None and again is not None:
        assert np.array_equal(found.rows, again.rows)
        assert found.total == len(labels)
        assert set(np.array(labels)[found.rows]) == set(labels)
    assert even_part(column, len(labels)) is None


@pytest.fixture
def folder(tmp_path):
    """Four class folders of twenty pictures; every tenth picture is in the wrong one."""
    rng = np.random.default_rng(0)
    true = np.repeat(np.arange(4), EACH)
    true[::10] = (true[::10] + 1) % 4
    for row in range(len(true)):
        place = tmp_path / "classes" / NAMES[row // EACH] / f"{row % EACH:02d}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(place)
    np.save(tmp_path / "probs.npy", opinions(true, 4).astype(np.float32))
    return tmp_path / "classes"


def test_a_part_of_an_image_folder_is_audited_compared_and_repaired(folder, tmp_path):
    flags = ("--limit", PART, "--pred-probs", tmp_path / "probs.npy")
    told = command("check", folder, "--limit", PART, "--workers", 0)
    assert "row r * 80 // 30 of classes" in told.stdout
    run, relabel = tmp_path / "run", ("--set", "correction.mode=relabel")
    done = command("audit", folder, *flags, *relabel, "--out", run)
    assert done.exit_code == 0, done.output
    assert "took rows at even distances, 4 classes of them" in done.stderr
    facts = json.loads((run / "run.json").read_text())
    assert facts["input"]["even_part_of"] == len(NAMES) * EACH
    issues = pd.read_parquet(run / "issues.parquet").set_index("row")
    whole = read_manifest(folder)
    assert issues.path.sort_index().tolist() == whole.path[TAKEN].tolist()
    wrong = np.flatnonzero(TAKEN % 10 == 0)
    assert set(issues.index[issues.action != "keep"]) == set(wrong)
    # The whole, compared with its part: the part's rows are found again by their content or path.
    full = ("--pred-probs", tmp_path / "probs.npy", "--baseline", run, "--json")
    done = command("audit", folder, *full, "--out", tmp_path / "full")
    changes = json.loads(done.stdout)["baseline"]
    assert changes["matched"] == {"by": "path", "rows": PART}
    assert changes["only_before"] == changes["newly_flagged"] == []
    # What moves is what was flagged, and goes back.
    patch, before = tmp_path / "fix.patch.jsonl", sorted(folder.rglob("*.png"))
    assert command("export", run, patch).exit_code == 0
    assert command("apply", patch, folder).exit_code == 0
    gone = {path.relative_to(folder).as_posix() for path in set(before) - set(folder.rglob("*"))}
    assert gone <= set(issues.path[wrong])
    assert gone
    assert command("apply", patch, folder, "--revert").exit_code == 0
    assert sorted(folder.rglob("*.png")) == before
    assert command("verify", run).exit_code == 0


def test_a_part_of_sorted_features_is_trained_on_again(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 60)
    X = (rng.normal(size=(240, 8)) + 4 * np.eye(8)[y]).astype(np.float32)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    quick = {"limit": 120, "loss": "cce", "epochs": 2, "threads": 1}
    run = audit(tmp_path / "data.npz", out=tmp_path / "run", **quick)
    assert run.issues.label_given.value_counts().tolist() == [30] * 4
    again = read_relabelled(load_run(run.folder)).manifest
    assert np.array_equal(again.arrays, X[::2])
    assert run.retrain(epochs=2).facts["input"]["even_part_of"] == len(y)
    # Features beside labels in memory: those of the same rows are taken.
    frame = pd.DataFrame({"label": np.array(NAMES)[y]})
    side = audit(frame, out=tmp_path / "side", features=X, **quick)
    assert side.issues.label_given.value_counts().tolist() == [30] * 4
    assert side.noise_rate < 0.2
