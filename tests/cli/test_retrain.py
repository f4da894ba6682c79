"""`labelclean retrain`: better labels, measured only on rows that nobody trained on."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from finished_runs import FLIPS, TEST, call, restated, small
from labelclean.evidence.features import CANDIDATE_LOSSES
from labelclean.runs.folder import RunFolder
from labelclean.runs.reading import load_run
from labelclean.runs.relabelled import read_relabelled
from labelclean.workflows.evaluation_split import choose_evaluation_split
from labelclean.workflows.observe import look
from labelclean.workflows.retrain import retrain_run


def copied(run: Path, name: str) -> Iterator[Path]:
    """Give a copy of a run beside it, from where it finds its samples too."""
    copy = run.parent / f"copy-{name}"
    shutil.copytree(run, copy)
    yield copy
    shutil.rmtree(copy)


@pytest.fixture
def run(world, tmp_path):
    yield from copied(world / "run", tmp_path.name)


@pytest.fixture
def arrays(features, tmp_path):
    yield from copied(features / "run", tmp_path.name)


def change(run: Path, **columns: list) -> None:
    """Replace columns of a run's corrected table."""
    path = run / "corrected.parquet"
    table = pq.read_table(path)
    for name, values in columns.items():
        place = table.column_names.index(name)
        kind = table.schema.field(place)
        text = isinstance(values[0], str | None)
        column = pa.array(values, pa.string()).cast(kind.type) if text else pa.array(values)
        table = table.set_column(place, kind, column)
    pq.write_table(table, path)
    restated(run)


def retrain(run: Path, *flags: object, code: int = 0):
    cache = run.parent / "cache"
    return call("retrain", run, *flags, "--cache-dir", cache, "--workers", "1", code=code)


def facts(run: Path, *flags: object) -> dict:
    return json.loads(retrain(run, *flags, "--json", "--quiet").stdout)


def test_the_test_split_is_measured_and_never_trained_on(world, run):
    frame = pd.read_csv(world / "digits.csv")
    action = [None if row >= TEST else "keep" for row in range(len(frame))]
    action[50] = "unreadable"
    action[:FLIPS] = ["relabel"] * FLIPS
    action[20] = "drop"
    change(run, label=frame["true"].tolist(), label_action=action)
    found = facts(run, "--truth-col", "true")
    assert found["evaluation"] == {
        "on": "test split", "rows": 30, "labels": "true", "repeated_rows_left_out": 0,
    }  # fmt: skip
    assert found["counts"] == {"changed": FLIPS, "left_out": 1, "decided": 0}
    assert found["before"]["trained_rows"] == 89
    assert found["after"]["trained_rows"] == 88
    assert found["loss"]["name"] == "cce"
    assert found["warnings"] == []
    for side in ("before", "after"):
        assert 0 <= found[side]["accuracy"] <= found[side]["best_accuracy"] <= 1
        assert 1 <= found[side]["best_epoch"] <= 2
        # 89 audited rows that can be read (12 of them wrong) and 30 of the test split.
        parts = found[side]
        right = (
            parts["accuracy"] * 30 + parts["clean_subset"] * 77 + parts["noisy_subset_true"] * 12
        )
        assert parts["hybrid"] == pytest.approx(right / 119, abs=1e-5)
    assert json.loads((run / "retrain" / "run.json").read_text()) == found
    names = sorted(path.name for path in (run / "retrain" / "model").iterdir())
    assert names == ["README.md", "config.json", "model.safetensors"]
    assert not (run / "retrain" / ".work").exists()
    out = run / "retrain" / "p" / "p.parquet"
    call("predict", run / "retrain", world / "new.csv", "--out", out, "--no-cache")
    said = pd.read_parquet(out)["label_predicted"][TEST:]
    assert (said == frame["true"][TEST:]).mean() == pytest.approx(found["after"]["accuracy"])


def test_without_a_test_split_a_slice_is_held_out_and_the_warning_says_so(features, arrays):
    found = facts(arrays)
    rows = found["evaluation"]["rows"]
    assert found["evaluation"]["on"] == "held-out slice"
    total = len(np.load(features / "digits.npz")["y"])
    assert rows == pytest.approx(total / 10, abs=2)
    assert found["before"]["trained_rows"] == total - rows
    assert "held out from the audited ones" in found["warnings"][0]
    assert "may be wrong" in found["warnings"][1]
    assert "hybrid" not in found["after"]
    change(arrays, y=np.load(features / "digits.npz")["true"].tolist())
    found = facts(arrays, "--truth-col", "true", "--overwrite", "--set", "training.weight_decay=0")
    assert found["evaluation"]["labels"] == "true"
    assert found["after"]["trained_rows"] == total - found["evaluation"]["rows"]
    assert found["after"]["noisy_subset_true"] > found["before"]["noisy_subset_true"]
    assert found["after"]["noisy_subset"] < found["before"]["noisy_subset"]
    assert found["after"]["hybrid"] > found["before"]["hybrid"] > 0.9


def test_a_row_teaches_as_much_as_its_label_is_likely_to_be_right(features, arrays):
    true = np.load(features / "digits.npz")["true"]
    wrong = np.arange(len(true)) % 3 > 0
    label = np.where(wrong, (true + 1) % 3, true).tolist()
    found = {}
    for name, doubt in (("trusted", 1.0), ("doubted", 1e-6)):
        change(arrays, y=label, label_confidence=np.where(wrong, doubt, 1.0).tolist())
        found[name] = facts(arrays, "--truth-col", "true", "--overwrite")["after"]
    assert found["doubted"]["accuracy"] > 0.9
    assert found["trusted"]["accuracy"] < 0.5
    assert found["doubted"]["trained_rows"] == found["trusted"]["trained_rows"]


def test_a_loss_nobody_named_is_tried_beside_cross_entropy(features, arrays):
    assert facts(arrays)["loss_trials"] == {}  # named when it was audited
    run = json.loads((arrays / "run.json").read_text())
    run["signal_quality"] = {name: {"auroc": 0.9, "ap": 0.9} for name in CANDIDATE_LOSSES}
    run["recipe"]["loss"] = run["loss"] = {"name": "mae", "params": {}}
    (arrays / "run.json").write_text(json.dumps(run))
    found = facts(arrays, "--overwrite")
    assert list(found["loss_trials"]) == ["mae", "cce"]
    best = max(found["loss_trials"], key=found["loss_trials"].get)
    assert (found["loss"]["name"], found["loss_before"]) == (best, "mae")
    assert found["loss_trials"][best] > 0.8
    named = facts(arrays, "--loss", "mae", "--overwrite")
    assert (named["loss"]["name"], named["loss_trials"]) == ("mae", {})


def test_copies_of_training_rows_are_not_measured(world, run):
    stored = load_run(run)
    data = read_relabelled(stored)
    scan = look(data.manifest, stored.recipe.data, lambda _done, _total: None)
    scan.digest[100] = scan.digest[0]
    exam = choose_evaluation_split(data, scan, 0)
    assert not exam.rows[100]
    assert exam.rows.sum() == 29
    assert exam.repeated == 1
    assert not (exam.rows & data.audited).any()


def test_people_stand_above_the_audit(run, tmp_path):
    lines = [
        {"row": 0, "sample_id": "0", "decision": "relabel", "label": "two"},
        {"row": 1, "sample_id": "1", "decision": "drop", "label": None},
        {"row": 2, "sample_id": "2", "decision": "confirm", "label": None},
        {"row": 3, "sample_id": "3", "decision": "none_of_these", "label": None},
        {"row": 4, "sample_id": "4", "decision": "drop", "label": None},
        {"row": 4, "sample_id": "4", "decision": "undo", "label": None},
    ]
    path = tmp_path / "decisions.jsonl"
    path.write_text("".join(json.dumps({**line, "time": "t"}) + "\n" for line in lines))
    data = read_relabelled(load_run(run), decisions=path)
    assert (data.trust[data.manifest.verified] == 1).all()
    assert data.trust[~data.manifest.verified & data.audited].min() < 1
    assert data.manifest.classes[data.manifest.label[0]] == "two"
    assert data.kept[:5].tolist() == [True, False, True, False, True]
    assert data.manifest.verified[:5].tolist() == [True, False, True, False, False]
    assert data.manifest.label[2] == data.given[2]
    found = facts(run, "--decisions", path, "--loss", "gce")
    assert found["counts"]["decided"] == 4
    assert found["loss"] == {"name": "gce", "params": {}}
    path.write_text('{"row": 0, "sample_id": "7", "decision": "drop"}\nno\n')
    said = retrain(run, "--decisions", path, "--overwrite", code=3).output
    assert "line 1" in said
    assert "line 2" in said


def test_a_whole_network_is_compared_with_the_run_s_own_model(world, tmp_path):
    run = world / "finetuned"
    call("audit", world / "digits.csv", "--out", run, *small(world / "cache"), "--mode", "finetune")
    found = facts(run)
    stored = json.loads((run / "run.json").read_text())
    assert found["before"]["accuracy"] == pytest.approx(stored["held_out_accuracy"]["test"])
    assert found["after"]["best_accuracy"] is None
    assert any("Only the final accuracy" in sentence for sentence in found["warnings"])


def test_refusals(features, run, arrays, tmp_path):
    assert "holds no finished run" in retrain(tmp_path / "none", code=3).output
    assert "unknown loss" in retrain(run, "--loss", "cse", code=2).output
    assert "by name" in retrain(run, "--loss", "auto", code=2).output
    assert "no key" in retrain(run, "--set", "training.epoch=2", code=2).output
    assert "no column 'truth'" in retrain(run, "--truth-col", "truth", code=3).output
    assert "label column itself" in retrain(run, "--truth-col", "label", code=2).output
    (run / "retrain").mkdir()
    (run / "retrain" / "run.json").write_text("{}")
    assert "--overwrite" in retrain(run, code=2).output
    shutil.rmtree(run / "retrain")
    shutil.copy(arrays / "corrected.parquet", run / "corrected.parquet")
    assert "does not belong to this run" in retrain(run, code=3).output
    (run / "corrected.parquet").unlink()
    assert "cannot be read" in retrain(run, code=3).output
    facts_ = json.loads((arrays / "run.json").read_text())
    facts_["input"]["path"] = "../moved.npz"
    (arrays / "run.json").write_text(json.dumps(facts_))
    assert "no longer there" in retrain(arrays, code=3).output
    np.savez(features / "moved.npz", X=np.zeros((4, 64), np.float32), y=np.arange(4))
    assert "was changed since" in retrain(arrays, code=3).output


def test_an_interrupted_retraining_leaves_no_run_and_is_begun_anew(arrays, monkeypatch):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("labelclean.workflows.retrain.write_model", stop)
        with pytest.raises(KeyboardInterrupt):
            retrain_run(arrays)
    assert not (arrays / "retrain" / "run.json").exists()
    assert retrain_run(arrays) is not None
    assert (arrays / "retrain" / "run.json").is_file()


def test_a_new_audit_makes_the_retrained_model_a_thing_of_the_past(features, arrays):
    assert retrain_run(arrays) is not None
    RunFolder(arrays).claim({"new": "audit"}, resume=False)
    said = call("predict", arrays / "retrain", features / "digits.npz", code=3).output
    assert "holds no finished run" in said


def test_rounds_end_when_the_labels_stand_still(features):
    run = features / "rounds"
    flags = ("--loss", "cce", "--epochs", "8", "--set", "correction.mode=relabel", "--limit", "240")
    more = ("--rounds", "2", "--json", "--quiet")
    said = call("audit", features / "digits.npz", "--out", run, *flags, *more)
    found = json.loads(said.stdout)
    assert found["counts"]["relabel"] == found["rounds"][0] > 0
    assert len(found["rounds"]) == 2
    second = pd.read_parquet(run / "round-2" / "corrected.parquet")
    first = pd.read_parquet(run / "corrected.parquet")
    assert (second["label_given"] == first["y"]).all()
    assert found["retrain"]["labels_from"] == "rounds/round-2"
    assert found["retrain"]["counts"]["changed"] == (second["y"] != first["label_given"]).sum()
    assert found["retrain"]["evaluation"]["on"] == "held-out slice"
