"""`labelclean export`: targets, manifests and run folders it refuses."""

import json
import shutil

import pyarrow.parquet as pq
import pytest

from finished_runs import restated
from labelclean import read_manifest
from planted import Planted, audit_probs, command, plant

pytestmark = pytest.mark.usefixtures("plain_figures")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Planted:
    return plant(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    return audit_probs(data, tmp_path_factory.mktemp("run") / "run")


def export(run, target, *flags, code):
    done = command("export", run, target, *flags)
    assert done.exit_code == code, done.output
    return done


def test_targets_that_are_refused(data, run, tmp_path):
    before = data.table.read_bytes()
    for flags in ((), ("--overwrite",)):
        done = export(run, data.table, *flags, code=2)
        assert "never changed" in done.stderr
    assert export(run, run / "issues.parquet", "--overwrite", code=2).stderr
    assert data.table.read_bytes() == before
    (tmp_path / "there.csv").write_text("x")
    assert "--overwrite" in export(run, tmp_path / "there.csv", code=2).stderr
    assert (tmp_path / "there.csv").read_text() == "x"
    export(run, tmp_path / "there.csv", "--overwrite", code=0)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "mine").write_text("x")
    assert export(run, tmp_path / "foreign", "--overwrite", code=2).stderr
    assert (tmp_path / "foreign" / "mine").read_text() == "x"
    assert "no writer" in export(run, tmp_path / "o.xlsx", code=2).stderr
    assert "no pictures" in export(run, tmp_path / "folder", code=1).stderr
    export(run, tmp_path / "o.csv", "--min-confidence", 2, code=2)
    export(run, tmp_path / "o.csv", "--min-confidence", 0.5, "--policy", "keep", code=2)
    export(run, tmp_path / "o.csv", "--policy", "nonsense", code=2)


def copy(run, data, tmp_path):
    """A copy of the data and its run, to be damaged."""
    shutil.copytree(run, tmp_path / "run")
    facts = json.loads((run / "run.json").read_text())
    shutil.copy(data.table, tmp_path / "data.csv")
    facts["input"]["path"] = "../data.csv"
    (tmp_path / "run" / "run.json").write_text(json.dumps(facts))
    return tmp_path / "run", facts


def test_a_manifest_that_changed(data, run, tmp_path):
    mine, facts = copy(run, data, tmp_path)
    export(mine, tmp_path / "a.csv", code=0)
    with (tmp_path / "data.csv").open("a") as file:
        file.write("s400,ant,x,ant\n")
    done = export(mine, tmp_path / "b.csv", code=3)
    assert facts["input"]["digest"] in done.stderr
    digest = read_manifest(tmp_path / "data.csv", need_images=False).digest
    assert digest in done.stderr
    export(mine, tmp_path / "b.csv", "--manifest", data.table, code=0)
    (tmp_path / "data.csv").unlink()
    assert "--manifest" in export(mine, tmp_path / "c.csv", code=3).stderr
    assert command("report", mine).exit_code == 3
    assert command("report", mine, "--manifest", data.table).exit_code == 0


def test_a_run_folder_with_missing_or_foreign_files(data, run, tmp_path):
    mine, facts = copy(run, data, tmp_path)
    target = tmp_path / "o.csv"
    other = audit_probs(plant(tmp_path / "other", 60, 6), tmp_path / "other-run")
    shutil.copy(other / "issues.parquet", mine / "issues.parquet")
    assert "issues.parquet does not belong" in export(mine, target, code=3).stderr
    (mine / "issues.parquet").write_bytes(b"PAR1 not at all")
    assert "issues.parquet is no complete" in export(restated(mine), target, code=3).stderr
    pq.write_table(pq.read_table(run / "corrected.parquet"), mine / "issues.parquet")
    assert "issues.parquet" in export(restated(mine), target, code=3).stderr
    (mine / "issues.parquet").unlink()
    assert "issues.parquet is missing" in export(mine, target, code=3).stderr
    for name, content in (("missing", None), ("damaged", "{"), ("foreign", "{}"), ("list", "[]")):
        path = mine / "run.json"
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content)
        assert "run.json" in export(mine, target, code=3).stderr, name
    (mine / "run.json").write_text(json.dumps({**facts, "schema_version": 99}))
    assert "99" in export(mine, target, code=3).stderr
    assert not target.exists()
    assert "run.json" in export(tmp_path / "nowhere", target, code=3).stderr
