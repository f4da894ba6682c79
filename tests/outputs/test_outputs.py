"""Tables, matrices, run.json and the report, from one hand-made audit."""

import csv
import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from labelclean import read_manifest
from labelclean.calibration.fused import Fusion
from labelclean.calibration.planted_mixture import PlantedMixture
from labelclean.correction.judging import judge_evidence
from labelclean.evidence.duplicates import DuplicateGroups
from labelclean.evidence.value import Evidence
from labelclean.outputs.matrices import confusion, matrix_csv, matrix_png
from labelclean.outputs.run_folder import write_results
from labelclean.outputs.run_json import run_facts
from labelclean.outputs.schema import issues_schema, label_type
from labelclean.outputs.tables import corrected_table, issues_parquet_table
from labelclean.runs.evidence_store import read_evidence, write_records

HOSTILE = ("<script>alert(1)</script>", "=cmd()", "plain $x$")


@pytest.fixture
def audit(tmp_path):
    rng = np.random.default_rng(0)
    count = 300
    true = rng.integers(0, 3, count)
    given = true.copy()
    given[:30] = (true[:30] + 1) % 3
    (tmp_path / "images").mkdir()
    Image.new("RGB", (8, 8), (200, 10, 10)).save(tmp_path / "images" / "a.png")
    with (tmp_path / "dataset.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "label", "note", "split"])
        for row in range(count):
            part = "test" if row >= 290 else "train"
            writer.writerow(["images/a.png", HOSTILE[given[row]], f"-{row}", part])
    manifest = read_manifest(tmp_path / "dataset.csv")
    order = np.array([manifest.classes.index(name) for name in HOSTILE])
    probs = np.full((count, 3), 0.0005)
    probs[np.arange(count), order[true]] = 0.999
    row = np.arange(2, 290)
    fusion = Fusion(
        (row % 5).astype(np.int8),
        1.0,
        {"heads": 0.7},
        distance=np.ones(len(row), np.float32),
        learnt=PlantedMixture(
            np.array([[1.0, 0.1]]), np.array([0.5]), np.array([0.1]), np.array([0.02]), 0.08
        ),
        suspicions=np.linspace(-1, 1, len(row), dtype=np.float32)[:, None],
    )
    twins = np.array([5, np.flatnonzero(manifest.label != manifest.label[5])[-1]])
    seen = Evidence(
        row=row,
        probs=probs[row].astype(np.float32),
        fusion=fusion,
        signals={"p_given": probs[row, manifest.label[row]], "margin": np.zeros(len(row))},
        unreadable={0: "truncated", 1: "empty"},
        quality={"gce": {"auroc": 0.9, "ap": 0.8}},
        duplicates=DuplicateGroups(twins, np.array([0, 0]), np.array([True, False])),
        faults={int(twins[0]): "dark"},
    )
    found = judge_evidence(manifest, seen, {"seed": 7, "timings": {"total": 1.0}})
    return found, seen, tmp_path


def test_issues_have_the_promised_columns_and_every_audited_row_once(audit):
    found, _, _ = audit
    table = issues_parquet_table(found)
    assert table.schema.equals(issues_schema(label_type(found.manifest.classes)))
    assert table["rank"].to_pylist() == list(range(1, 291))
    assert sorted(table["row"].to_pylist()) == list(range(290))
    assert table["action"].to_pylist()[-2:] == ["unreadable", "unreadable"]
    assert table["reason"].to_pylist()[-2:] == ["truncated", "empty"]
    assert table["p_error"].to_pylist()[-1] is None
    assert table["attention"].null_count == 290
    suspicion = table["suspicion"].to_pylist()[:-2]
    assert suspicion == sorted(suspicion, reverse=True)
    flagged = [row for row, action in zip(*_columns(table, "row", "action"), strict=True)
               if action in ("relabel", "review")]  # fmt: skip
    assert set(flagged) == set(range(2, 30))
    for given, suggested, action in zip(
        *_columns(table, "label_given", "label_suggested", "action"), strict=True
    ):
        assert action != "keep" or given == suggested
    assert any("another label" in reason for reason in table["reason"].to_pylist())


def _columns(table, *names):
    return [table[name].to_pylist() for name in names]


def test_corrected_is_the_input_but_for_relabelled_rows(audit):
    found, _, _ = audit
    table = corrected_table(found)
    before = found.manifest.table
    assert table.column_names == [
        *before.column_names, "label_given", "label_action", "label_confidence", "p_error",
    ]  # fmt: skip
    for name in before.column_names:
        if name != "label":
            assert table[name].equals(before[name])
    assert table["label_given"].equals(before["label"])
    given, now, action = _columns(table, "label_given", "label", "label_action")
    for row in range(len(table)):
        if action[row] != "relabel":
            assert now[row] == given[row]
    assert sum(a == "relabel" for a in action) >= 20
    assert action[290:] == [None] * 10
    assert action[0] == "unreadable"


def test_files_are_written_and_hostile_names_stay_text(audit):
    found, _, folder = audit
    out = folder / "run"
    out.mkdir()
    write_results(found, out, load=lambda row: np.zeros((8, 8, 3), np.uint8))
    assert {path.name for path in out.iterdir()} == {
        "issues.parquet", "corrected.parquet", "report.html", "confusion_given_suggested.csv",
        "confusion_given_suggested.png", "noise_transition.csv", "noise_transition.png",
    }  # fmt: skip
    page = (out / "report.html").read_text()
    assert "<script>alert" not in page
    assert r"\u003cscript\u003ealert(1)" in page
    assert "https://" not in page
    metadata = json.loads(pq.read_schema(out / "issues.parquet").metadata[b"labelclean"])
    assert metadata["classes"] == list(found.manifest.classes)
    assert metadata["seed"] == 7
    assert metadata["input_digest"] == found.manifest.digest
    again = read_manifest(out / "corrected.parquet")
    assert len(again) == 300
    assert again.image_root is not None
    assert (again.image_root / "images" / "a.png").is_file()
    first = (out / "issues.parquet").read_bytes()
    write_results(found, out, load=None)
    assert (out / "issues.parquet").read_bytes() == first


def test_run_json_is_plain_and_complete(audit):
    found, _, _ = audit
    facts = json.loads(json.dumps(run_facts(found), allow_nan=False))
    for key in ("schema_version", "classes", "counts", "noise_rate", "noise_rate_interval",
                "class_noise", "signal_quality", "timings", "seed", "versions"):  # fmt: skip
        assert key in facts
    assert facts["counts"]["unreadable"] == 2
    assert facts["counts"]["audited"] == 290
    low, high = facts["noise_rate_interval"]
    assert low <= facts["noise_rate"] <= high


def test_evidence_comes_back_and_judges_the_same(audit):
    found, seen, folder = audit
    import pyarrow as pa

    write_records(folder, pa.table({"row": pa.array(seen.row)}), seen, found.manifest)
    stored = read_evidence(folder / "records.parquet")
    again = judge_evidence(found.manifest, stored, found.facts)
    assert issues_parquet_table(again).equals(issues_parquet_table(found))


def test_confusion_counts_pairs():
    counts = confusion(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0]), 3)
    np.testing.assert_array_equal(counts, [[1, 1, 0], [0, 1, 0], [1, 0, 0]])
    text = matrix_csv(counts, ("a", "b,c", "d"), "given\\suggested").decode()
    rows = list(csv.reader(io.StringIO(text)))
    assert rows == [
        ["given\\suggested", "a", "b,c", "d"],
        ["a", "1", "1", "0"],
        ["b,c", "0", "1", "0"],
        ["d", "1", "0", "0"],
    ]


@pytest.mark.parametrize("size", [2, 12, 40])
def test_a_matrix_becomes_a_picture(size):
    names = tuple([*HOSTILE, "\u202e", "x" * 300, *map(str, range(40))][:size])
    png = matrix_png(np.eye(size), names, title="t", rows="r", columns="c")
    with Image.open(io.BytesIO(png)) as image:
        assert min(image.size) > 200
    assert png == matrix_png(np.eye(size), names, title="t", rows="r", columns="c")
