"""`labelclean report`: the same outputs from records alone, sharper with people's decisions."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from finished_runs import restated
from planted import NAMES, ROWS, Planted, audit_probs, command, plant

SAME = ("issues.parquet", "corrected.parquet", "confusion_given_suggested.csv",
        "noise_transition.csv", "confusion_given_true.csv", "report.html")  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Planted:
    return plant(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("finished") / "run"
    return audit_probs(data, out, "--truth-col", "true_label")


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def facts(run):
    return json.loads((run / "run.json").read_text(encoding="utf-8"))


def contents(run):
    return {name: (run / name).read_bytes() for name in SAME}


def issues(run):
    return pd.read_parquet(run / "issues.parquet").set_index("row")


def test_records_are_enough(run):
    before, said = contents(run), facts(run)
    for name in SAME:
        (run / name).unlink()
    done = command("report", run)
    assert done.exit_code == 0, done.output
    assert f"{ROWS} rows audited" in done.stdout
    assert contents(run) == before
    now = facts(run)
    assert now.pop("reported")["finished"]
    assert now.pop("decisions") == 0
    assert now == said


def test_a_trained_run_is_judged_again(data, tmp_path):
    run = tmp_path / "run"
    flags = ("--features", data.features, "--epochs", 2, "--loss", "gce", "--out", run)
    assert command("audit", data.table, *flags).exit_code == 0
    before, said = (run / "issues.parquet").read_bytes(), facts(run)
    assert command("report", run).exit_code == 0
    assert (run / "issues.parquet").read_bytes() == before
    now = facts(run)
    for name in ("epochs", "loss", "timings", "recipe", "ran", "versions", "input"):
        assert now[name] == said[name]


def test_people_are_believed(data, run):
    found = issues(run)
    moved = found.index[found["action"] == "relabel"]
    quiet = found.index[found["action"] == "keep"]
    confirmed, dropped, unsure, none = moved[:4].tolist()
    wrong = int(quiet[-1])
    label = next(name for name in NAMES if name != found["label_given"][wrong])
    decisions = {
        confirmed: ("confirm", None),
        dropped: ("drop", None),
        unsure: ("unsure", None),
        none: ("none_of_these", None),
        wrong: ("relabel", label),
    }
    text = "".join(
        json.dumps({"row": row, "sample_id": f"s{row}", "decision": what, "label": label}) + "\n"
        for row, (what, label) in decisions.items()
    )
    (run / "decisions.jsonl").write_text(text)
    assert "was not used" in command("report", run).stderr
    done = command("report", run, "--decisions", run / "decisions.jsonl", "--json")
    assert done.exit_code == 0, done.output
    now = issues(run)
    assert json.loads(done.stdout) == facts(run)
    assert facts(run)["decisions"] == 5
    assert now["rank"].tolist() == list(range(1, ROWS + 1))
    assert now["action"][[confirmed, dropped, unsure, none, wrong]].tolist() == [
        "keep", "drop", "review", "drop", "relabel",
    ]  # fmt: skip
    assert now["p_error"][[confirmed, none, wrong]].tolist() == [0, 1, 1]
    assert set(now.index[:2]) == {none, wrong}
    assert now["label_given"][wrong] == found["label_given"][wrong]
    assert now["label_suggested"][wrong] == label
    assert "person" in now["reason"][wrong]
    assert facts(run)["noise_rate"] == pytest.approx(now["p_error"].mean(), abs=1e-6)
    low, high = facts(run)["noise_rate_interval"]
    assert low <= facts(run)["noise_rate"] <= high
    assert facts(run)["diagnosis"][1] == (
        "People looked at 5 rows: 2 labels are wrong, 1 right, 2 not clear."
    )
    corrected = pd.read_parquet(run / "corrected.parquet")
    assert corrected["label"][wrong] == label
    assert corrected["label"][confirmed] == found["label_given"][confirmed]
    given = pd.read_csv(data.table)["label"]
    changed = np.flatnonzero(corrected["label"] != given)
    assert set(changed) == set(now.index[now["action"] == "relabel"])
    # What people decided leaves with the next export, and can be taken back.
    assert command("report", run).exit_code == 0
    pd.testing.assert_frame_equal(issues(run), found)


def test_bad_input(data, run, tmp_path):
    (tmp_path / "d.jsonl").write_text("{}\n")
    before = contents(run)
    done = command("report", run, "--decisions", tmp_path / "d.jsonl")
    assert done.exit_code == 3
    assert "line 1" in done.stderr
    other = audit_probs(plant(tmp_path / "other", 60, 6), tmp_path / "small")
    own, facts = ((run / name).read_bytes() for name in ("records.parquet", "run.json"))
    shutil.copy(other / "records.parquet", run / "records.parquet")
    done = command("report", run)
    assert done.exit_code == 3
    assert "records.parquet does not belong" in done.stderr
    shutil.copy(run / "issues.parquet", run / "records.parquet")
    done = command("report", restated(run))
    assert done.exit_code == 3
    assert "records.parquet holds no records" in done.stderr
    (run / "records.parquet").unlink()
    assert "records.parquet is missing" in command("report", run).stderr
    (run / "records.parquet").write_bytes(own)
    (run / "run.json").write_bytes(facts)
    assert contents(run) == before
    assert command("report", tmp_path / "nowhere").exit_code == 3
    assert command("report").exit_code == 2


def test_a_stopped_report_is_no_finished_run(run, tmp_path, monkeypatch):
    before = contents(run)

    def stop(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("labelclean.workflows.write.write_results", stop)
        assert command("report", run).exit_code == 1
    assert not (run / "run.json").exists()
    for words in (["export", run, tmp_path / "o.csv"], ["review", run, "--import", run / "x.json"]):
        done = command(*words)
        assert done.exit_code == 3, done.output
        assert "two judgements" in done.stderr
        assert f"labelclean report {run}" in done.stderr
    for flag in ((), ("--resume",)):
        done = command("audit", tmp_path / "any.csv", "--out", run, *flag)
        assert done.exit_code == 2
        assert "report was stopped" in done.stderr
    assert command("report", run).exit_code == 0
    assert contents(run) == before
    assert not (run / ".work").exists()
    assert command("export", run, tmp_path / "o.csv").exit_code == 0
