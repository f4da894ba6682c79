"""`labelclean predict`: every row gets an answer or a reason; nothing foreign is loaded."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from finished_runs import NAMES, call, small
from labelclean import read_manifest

COLUMNS = ["row", "sample_id", "path", "label_predicted", "p_predicted", "probs", "reason"]


def predict(world: Path, *more: object, code: int = 0):
    flags = ("--cache-dir", world / "cache", "--workers", "1")
    return call("predict", *more, *flags, code=code)


def test_every_row_gets_an_answer_or_a_reason(world, tmp_path):
    out = tmp_path / "p.parquet"
    said = predict(world, world / "run", world / "new.csv", "--out", out, "--json")
    facts = json.loads(said.stdout)
    assert (facts["rows"], facts["predicted"], facts["unreadable"]) == (120, 119, 1)
    assert sum(entry["rows"] for entry in facts["labels"]) == 119
    frame = pd.read_parquet(out)
    assert list(frame.columns) == COLUMNS
    assert frame["row"].tolist() == list(range(120))
    lost = frame.iloc[50]
    assert lost[["label_predicted", "p_predicted", "probs"]].isna().all()
    assert lost["reason"]
    read = frame.drop(index=50)
    assert read["reason"].isna().all()
    probs = np.stack(read["probs"])
    assert np.allclose(probs.sum(axis=1), 1, atol=1e-5)
    assert np.allclose(probs.max(axis=1), read["p_predicted"])
    classes = np.array(sorted(NAMES))
    assert (classes[probs.argmax(axis=1)] == read["label_predicted"]).all()
    assert pq.read_schema(out).field("probs").type == pa.list_(pa.float32())


def test_the_model_says_what_it_said_when_it_was_trained(world, tmp_path):
    out = tmp_path / "p.parquet"
    predict(world, world / "run", world / "digits.csv", "--out", out)
    frame = pd.read_parquet(out).set_index("row")
    records = pd.read_parquet(world / "run" / "records.parquet").set_index("row")
    trained = np.stack(records["probs"])
    assert np.allclose(np.stack(frame.loc[records.index, "probs"]), trained, atol=1e-5)
    facts = json.loads((world / "run" / "run.json").read_text())
    test = pd.read_csv(world / "digits.csv").query("split == 'test'")
    right = (frame.loc[test.index, "label_predicted"] == test["label"]).mean()
    assert right == pytest.approx(facts["held_out_accuracy"]["test"])


def test_the_same_twice_from_the_cache_and_without(world, tmp_path):
    for name, flags in (("a", ()), ("b", ()), ("c", ("--no-cache",))):
        out = tmp_path / f"{name}.parquet"
        predict(world, world / "run", world / "new.csv", "--out", out, *flags)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "c.parquet").read_bytes()


def test_the_default_name_and_a_manifest_made_of_predictions(world, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    text = predict(world, world / "run", world / "new.csv", "--embeddings").stdout
    assert "119 of 120 rows predicted" in text
    out = tmp_path / "new-predictions.parquet"
    frame = pd.read_parquet(out)
    assert len({len(vector) for vector in frame["embedding"].dropna()}) == 1
    again = read_manifest(out, need_labels=False)
    assert again.image_root is not None
    assert (again.image_root / again.path[0]).is_file()


def test_features(features, tmp_path):
    X = np.load(features / "digits.npz")["X"]
    np.savez(tmp_path / "new.npz", X=X[:5])
    out = tmp_path / "p.parquet"
    call("predict", features / "run", tmp_path / "new.npz", "--out", out)
    frame = pd.read_parquet(out)
    assert frame["label_predicted"].dtype == np.int64
    assert len(frame) == 5
    np.savez(tmp_path / "wide.npz", X=X[:5, :9])
    said = call("predict", features / "run", tmp_path / "wide.npz", code=3).output
    assert "9 features per row, and the model was trained on 64" in said


def test_a_whole_network(world, tmp_path):
    flags = small(world / "cache")
    call("audit", world / "digits.csv", "--out", tmp_path / "run", *flags, "--mode", "finetune")
    out = tmp_path / "p.parquet"
    predict(world, tmp_path / "run", world / "new.csv", "--out", out, "--embeddings")
    frame = pd.read_parquet(out).set_index("row")
    records = pd.read_parquet(tmp_path / "run" / "records.parquet").set_index("row")
    said = np.stack(frame.loc[records.index, "probs"])
    assert np.allclose(said, np.stack(records["probs"]), atol=1e-4)
    np.savez(tmp_path / "new.npz", X=np.zeros((3, 4), np.float32))
    text = predict(world, tmp_path / "run", tmp_path / "new.npz", code=3).output
    assert "trained on pictures" in text


def test_refusals(world, tmp_path):
    run, new = world / "run", world / "new.csv"
    assert "must end in .parquet" in predict(world, run, new, "--out", "p.csv", code=2).output
    inside = run / "corrected.parquet"
    assert "run folder" in predict(world, run, new, "--out", inside, code=2).output
    assert "holds no finished run" in predict(world, tmp_path / "none", new, code=3).output
    assert "holds no finished run" in predict(world, world, new, code=3).output
    assert "does not exist" in predict(world, run, tmp_path / "none.csv", code=3).output
    own = tmp_path / "own.parquet"
    shutil.copy(inside, own)
    assert "manifest itself" in predict(world, run, own, "--out", own, code=2).output


def test_a_damaged_run_is_refused(world, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(world / "run", run)
    weights = run / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    assert "damaged" in predict(world, run, world / "new.csv", code=3).output
    shutil.rmtree(run / "model")
    assert "cannot be read" in predict(world, run, world / "new.csv", code=3).output
    (run / "run.json").write_text('{"schema_version": 3, "recipe": {"data": {"limits": 1}}}')
    assert "no run.json of labelclean" in predict(world, run, world / "new.csv", code=3).output


def test_no_readable_row(world, tmp_path):
    (tmp_path / "x.png").write_bytes(b"no picture")
    (tmp_path / "new.csv").write_text("image\nx.png\n")
    out = tmp_path / "p.parquet"
    said = predict(world, world / "run", tmp_path / "new.csv", "--out", out, code=3).output
    assert "none of 1 rows can be read" in said
    assert not out.exists()
