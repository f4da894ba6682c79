"""A second audit believes what people decided: `audit --decisions`."""

import json

import numpy as np
import pandas as pd
import pytest

from finished_runs import call, write_features
from planted import NAMES, ROWS, Planted, audit_probs, command, plant

pytestmark = pytest.mark.usefixtures("plain_figures")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Planted:
    return plant(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def decisions(data):
    """Rows 0 to 19 repaired, 20 dropped, 21 no label fits, 22 unsure, 100 to 139 confirmed."""
    entries = [(row, "relabel", NAMES[data.true[row]]) for row in range(20)]
    entries += [(20, "drop", None), (21, "none_of_these", None), (22, "unsure", None)]
    entries += [(row, "confirm", None) for row in range(100, 140)]
    path = data.table.parent / "decisions.jsonl"
    path.write_text(
        "".join(
            json.dumps({"row": row, "sample_id": f"s{row}", "decision": what, "label": label})
            + "\n"
            for row, what, label in entries
        )
    )
    return path


def facts(run):
    return json.loads((run / "run.json").read_text(encoding="utf-8"))


def issues(run):
    return pd.read_parquet(run / "issues.parquet").set_index("row")


def check(run, data, first):
    found, corrected = issues(run), pd.read_parquet(run / "corrected.parquet")
    names = np.array(NAMES)
    assert sorted(found.index) == list(range(ROWS))
    assert found["rank"].tolist() == list(range(1, ROWS + 1))
    assert found["label_given"].sort_index().tolist() == names[data.given].tolist()
    assert (found["action"][list(range(20))] == "relabel").all()
    assert (found["p_error"][list(range(20))] == 1).all()
    assert found["action"][[20, 21, 22]].tolist() == ["drop", "drop", "review"]
    assert np.isnan(found["p_error"][20])
    assert found["p_error"][21] == 1
    assert np.isnan(found["p_given"][20])
    assert (found["action"][list(range(100, 140))] == "keep").all()
    assert (found["p_error"][list(range(100, 140))] == 0).all()
    assert found["reason"][[0, 20, 21, 100]].str.contains("person").all()
    assert corrected["label"][:20].tolist() == names[data.true[:20]].tolist()
    assert corrected["label_action"][[0, 20, 21, 100]].tolist() == [
        "relabel", "drop", "drop", "keep",
    ]  # fmt: skip
    assert corrected["label_given"].tolist() == names[data.given].tolist()
    assert (corrected["label_confidence"][:20] == 1).all()
    said = facts(run)
    assert said["decisions"] == 63
    assert said["input"]["digest"] == first["input"]["digest"]
    assert said["input"]["decisions"]
    assert said["noise_rate"] == pytest.approx(found["p_error"].mean(), abs=1e-6)
    assert said["counts"]["drop"] == 2
    return found


def test_probabilities(data, decisions, tmp_path):
    first = facts(audit_probs(data, tmp_path / "first"))
    run = audit_probs(data, tmp_path / "run", "--decisions", decisions, "--truth-col", "true_label")
    found = check(run, data, first)
    records = pd.read_parquet(run / "records.parquet")
    assert {20, 21}.isdisjoint(records["row"])
    # Records are enough to say all of it again.
    before = {name: (run / name).read_bytes() for name in ("issues.parquet", "corrected.parquet")}
    assert command("report", run).exit_code == 0
    assert {name: (run / name).read_bytes() for name in before} == before
    assert facts(run)["decisions"] == 63
    # What is decided later stands above what the audit was told.
    later = tmp_path / "later.jsonl"
    line = {"row": 20, "sample_id": "s20", "decision": "confirm", "label": None}
    later.write_text(json.dumps(line) + "\n")
    assert command("report", run, "--decisions", later).exit_code == 0
    assert issues(run)["action"][20] == "keep"
    assert issues(run)["p_error"][20] == 0
    assert issues(run)["action"][0] == found["action"][0]


def test_training(data, decisions, tmp_path):
    flags = ("--features", data.features, "--epochs", 2, "--loss", "gce", "--quiet")
    run, plain = tmp_path / "run", tmp_path / "plain"
    assert command("audit", data.table, *flags, "--out", plain).exit_code == 0
    done = command("audit", data.table, *flags, "--out", run, "--decisions", decisions)
    assert done.exit_code == 0, done.output
    check(run, data, facts(plain))
    records = pd.read_parquet(run / "records.parquet").set_index("row")
    assert {20, 21}.isdisjoint(records.index)
    assert (records["label"][:20] == data.true[:20]).all()
    done = command("export", run, tmp_path / "clean.csv")
    assert done.exit_code == 0, done.output
    clean = pd.read_csv(tmp_path / "clean.csv").set_index("sample_id")
    assert {"s20", "s21"}.isdisjoint(clean.index)
    assert clean["label"]["s0"] == NAMES[data.true[0]]
    dropped = command("export", run, tmp_path / "dropped.csv", "--policy", "drop")
    assert dropped.exit_code == 0, dropped.output
    assert "s20" not in pd.read_csv(tmp_path / "dropped.csv")["sample_id"].tolist()


def test_bad_decisions_are_refused_before_anything_is_written(data, tmp_path):
    (tmp_path / "d.jsonl").write_text('{"row": 9999}\n')
    flags = ("--pred-probs", data.probs, "--out", tmp_path / "run")
    done = command("audit", data.table, *flags, "--decisions", tmp_path / "d.jsonl")
    assert done.exit_code == 3
    assert "line 1: row 9999" in done.stderr
    assert not (tmp_path / "run").exists()


def test_rounds_believe_them_too(tmp_path):
    table = write_features(tmp_path / "digits.npz")
    true = np.load(table)["true"]
    entries = [(row, "relabel", str(true[row])) for row in range(10)] + [(10, "drop", None)]
    text = "".join(
        json.dumps({"row": row, "sample_id": str(row), "decision": what, "label": label}) + "\n"
        for row, what, label in entries
    )
    (tmp_path / "d.jsonl").write_text(text)
    run = tmp_path / "run"
    flags = ("--loss", "cce", "--epochs", 2, "--rounds", 2, "--decisions", tmp_path / "d.jsonl")
    call("audit", table, "--out", run, *flags, "--json", "--quiet")
    for folder in (run, run / "round-2"):
        corrected = pd.read_parquet(folder / "corrected.parquet")
        assert corrected["y"][:10].tolist() == true[:10].tolist()
        assert corrected["label_action"][10] == "drop"
    counts = json.loads((run / "retrain" / "run.json").read_text())["counts"]
    assert counts["decided"] == 11
