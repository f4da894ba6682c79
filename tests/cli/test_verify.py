"""`labelclean verify`: a whole folder passes, and whatever is mixed, lost or foreign is named."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from finished_runs import restated
from planted import audit_probs, command, plant

pytestmark = pytest.mark.usefixtures("plain_figures")


@pytest.fixture(scope="module")
def runs(tmp_path_factory, plain_figures):
    """Two runs of two tables."""
    folder = tmp_path_factory.mktemp("runs")
    one = audit_probs(plant(folder / "one", 60, 6), folder / "one/run")
    return one, audit_probs(plant(folder / "two", 60, 9), folder / "two/run")


@pytest.fixture
def run(runs):
    yield runs[0]
    for path in runs[0].parent.glob("run*"):
        if path != runs[0]:
            shutil.rmtree(path)


def copied(run, name="run-copy"):
    return shutil.copytree(run, run.parent / name)


def test_a_whole_run_passes(run):
    done = command("verify", run, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    facts = json.loads((run / "run.json").read_bytes())
    assert (found["rows"], found["files"], found["notes"]) == (60, len(facts["files"]), [])
    assert {"issues.parquet", "corrected.parquet", "records.parquet"} < set(facts["files"])


@pytest.mark.parametrize(
    "name", ["issues.parquet", "corrected.parquet", "records.parquet", "report.html",
             "confusion_given_suggested.csv"],
)  # fmt: skip
def test_a_file_of_another_run_is_refused_by_everybody(run, runs, name, tmp_path):
    mixed = copied(run)
    shutil.copy(runs[1] / name, mixed / name)
    done = command("verify", mixed)
    assert done.exit_code == 3
    assert f"{name} is not the file run.json names" in done.stderr
    data = run.parent / "data.csv"
    for words in (
        ("export", mixed, tmp_path / "o.csv"),
        ("report", mixed),
        ("retrain", mixed, "--threads", 1),
        ("review", mixed, "--no-open"),
        ("predict", mixed, data, "--out", tmp_path / "p.parquet"),
        ("audit", data, "--baseline", mixed, "--out", tmp_path / "run"),
    ):
        done = command(*words)
        assert done.exit_code == 3, words
        assert f"{name} does not belong to this run" in done.stderr, words


def test_what_the_digests_cannot_tell(run, runs):
    """Tables that were put together so that run.json names them."""
    mixed = copied(run)
    table = pq.read_table(mixed / "issues.parquet")
    other = pq.read_table(runs[1] / "issues.parquet").replace_schema_metadata(table.schema.metadata)
    pq.write_table(other, mixed / "issues.parquet")
    assert "is not label_given of issues" in command("verify", restated(mixed)).stderr
    records = pq.read_table(mixed / "records.parquet")
    names = pa.array(records["sample_id"].to_pylist()[::-1])
    place = records.column_names.index("sample_id")
    pq.write_table(records.set_column(place, "sample_id", names), mixed / "records.parquet")
    assert "is about other samples" in command("verify", restated(mixed)).stderr
    shutil.copy(run / "records.parquet", mixed / "records.parquet")
    pq.write_table(table.slice(0, 59), mixed / "issues.parquet")
    done = command("verify", restated(mixed))
    assert "does not hold every audited row once" in done.stderr
    assert "are not about the same rows" in done.stderr


def test_files_that_are_gone_and_lines_that_cannot_be_read(run):
    mixed = copied(run)
    (mixed / "report.html").unlink()
    assert "report.html is gone" in command("verify", mixed).stderr
    shutil.copy(run / "report.html", mixed / "report.html")
    line = {"row": 1, "sample_id": "s1", "decision": "confirm"}
    (mixed / "decisions.jsonl").write_text(json.dumps(line) + '\n{"row": 2, "sam')
    done = command("verify", mixed)
    assert done.exit_code == 0
    assert "was cut off" in done.stderr
    assert "1 decisions" in done.stdout
    (mixed / "decisions.jsonl").write_text(json.dumps(line | {"sample_id": "s2"}) + "\n")
    done = command("verify", mixed)
    assert done.exit_code == 3
    assert "line 1: sample_id 's2'" in done.stderr


def test_a_run_that_did_not_end_is_none(run):
    mixed = copied(run)
    (mixed / "run.json").unlink()
    done = command("verify", mixed)
    assert done.exit_code == 3
    assert "holds no finished run" in done.stderr


def test_the_data_may_be_gone_but_not_another(run, runs):
    moved = copied(run)
    done = command("verify", moved, "--manifest", runs[1].parent / "data.csv")
    assert done.exit_code == 0
    assert "not compared with the audited data" in done.stderr
