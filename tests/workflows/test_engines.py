"""Shards of an audit: whoever does them, and however often, the answers are the same."""

import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr

from finished_runs import call, write_pictures
from labelclean.data.opening import open_manifest
from labelclean.options import no_log, silent
from labelclean.recipe import load_recipe
from labelclean.training.parts import PartStore, cut_rows
from labelclean.training.runtime import start_runtime
from labelclean.workflows.engines import do_parts
from labelclean.workflows.part_plan import plan_parts

SMALL = ("model.backbone=test_resnet", "model.pretrained=false", "model.image_size=32",
         "training.epochs=4")  # fmt: skip
FLAGS = [word for one in SMALL for word in ("--set", one)]


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch, tmp_path):
    monkeypatch.setattr("labelclean.workflows.part_plan.PART_ROWS", 30)
    monkeypatch.setenv("LABELCLEAN_CACHE", str(tmp_path / "cache"))


@pytest.fixture(name="table", scope="module")
def _table(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("pictures"))


def planned(table, work):
    recipe = load_recipe(None, SMALL)
    manifest = open_manifest(table, recipe.data)
    return plan_parts(manifest, recipe, start_runtime("cpu", threads=1), work)


def rows_of(store):
    names = pq.read_schema(store.path(0)).names
    return pd.concat([store.read(n, *names).to_pandas() for n in store.plan.parts])


def alike(one, other):
    """Tell whether two lists of rows are the same."""
    for name in one.columns:
        left, right = one[name].tolist(), other[name].tolist()
        assert all(np.array_equal(a, b) for a, b in zip(left, right, strict=True)), name


def ranking(run):
    issues = pq.read_table(run / "issues.parquet", columns=["row", "suspicion"]).to_pandas()
    assert issues["row"].is_unique
    return issues.sort_values("row").reset_index(drop=True)


def test_rows_are_cut_evenly_and_at_the_edges_of_shards():
    assert cut_rows(5, 10) == (0, 5)
    assert cut_rows(21, 10) == (0, 7, 14, 21)
    assert cut_rows(10, 4, np.array([3, 4])) == (0, 3, 4, 7, 10)


def test_shares_are_neighbours_and_every_part_is_somebodys(table, tmp_path):
    plan = planned(table, tmp_path).plan
    assert len(plan.parts) == 4
    shares = [list(plan.share(worker, 3)) for worker in (1, 2, 3)]
    assert [number for share in shares for number in share] == [0, 1, 2, 3]
    assert [list(plan.share(n, 9)) for n in range(1, 10)].count([]) == 5


def test_processes_do_what_one_process_does_and_done_parts_stay(table, tmp_path):
    alone, together = planned(table, tmp_path / "a"), planned(table, tmp_path / "b")
    said = []
    do_parts(alone, "local", 1, said.append, silent)
    do_parts(together, "local", 2, no_log, silent)
    alike(rows_of(alone), rows_of(together))
    assert len(said) == 1
    assert "4 shards, 120 rows" in said[0]
    before = alone.path(2).stat().st_mtime_ns
    alone.path(1).write_bytes(alone.path(1).read_bytes()[:1000])
    assert alone.missing() == [1]
    do_parts(alone, "local", 1, no_log, silent)
    assert alone.path(2).stat().st_mtime_ns == before
    alike(rows_of(alone), rows_of(together))
    scan = alone.scan()
    assert np.flatnonzero(~scan.readable).tolist() == [50]
    rows = np.array([3, 4, 31, 119, 7])
    tiles = list(alone.features(rows).tiles())
    assert [tile.stop - tile.start for tile, _ in tiles] == [2, 1, 1, 1]
    everything = np.stack(rows_of(alone)["feature"].tolist())
    assert np.array_equal(np.concatenate([part for _, part in tiles]), everything[rows])


def test_workers_and_engines_rank_as_one_process_does(table, tmp_path):
    call("audit", table, "--out", tmp_path / "plain", "--quiet", *FLAGS)
    run = tmp_path / "shared"
    call("audit", table, "--out", run, *FLAGS, "--engine", "workers")
    answer = call("worker", run, "--shards", "2/2", "--json")
    assert json.loads(answer.stdout) == {
        "shards": 2, "done": 2, "done_before": 0, "rows": 60, "left": 2,
    }  # fmt: skip
    again = json.loads(call("worker", run, "--shards", "2/2", "--json").stdout)
    assert (again["done"], again["done_before"]) == (0, 2)
    call("audit", table, "--out", run, *FLAGS, "--resume")
    one, other = ranking(tmp_path / "plain"), ranking(run)
    assert one["row"].tolist() == other["row"].tolist()
    known = one["suspicion"].notna()
    assert known.equals(other["suspicion"].notna())
    assert spearmanr(one["suspicion"][known], other["suspicion"][known])[0] > 0.999
    assert not (run / ".work").exists()


def test_a_worker_says_why_it_cannot_help(table, tmp_path):
    run = tmp_path / "run"
    assert "no shards to work on" in call("worker", run, code=3).output
    call("audit", table, "--out", run, *FLAGS, "--engine", "workers")
    assert "the second of eight" in call("worker", run, "--shards", "9/8", code=2).output
    plan = run / ".work/parts/plan.json"
    text = plan.read_text()
    plan.write_text(text.replace("torch ", "torch 0.", 1))
    answer = call("worker", run, code=3)
    assert "would compute other features" in answer.output
    assert "Install the same versions" in answer.output
    answer = call("audit", table, "--out", run, *FLAGS, "--resume", code=2)
    assert "was begun with other shards" in answer.output
    plan.write_text("{")
    assert "is damaged" in call("worker", run, code=3).output
    features = call("audit", table, "--out", tmp_path / "x", "--engine", "local",
                    "--mode", "scratch", code=2)  # fmt: skip
    assert "neither with --mode scratch" in features.output


@pytest.mark.slow
def test_workers_that_are_killed_are_started_again(table, tmp_path):
    run = tmp_path / "run"
    call("audit", table, "--out", run, *FLAGS, "--engine", "workers")
    whole = planned(table, tmp_path / "whole")
    do_parts(whole, "local", 1, no_log, silent)
    command = [sys.executable, "-m", "labelclean", "worker", str(run), "--shards"]
    killed = subprocess.Popen([*command, "1/1"])
    store = PartStore(run / ".work", PartStore.stored_plan(run / ".work"))
    patience = time.monotonic() + 60
    while len(store.missing()) == 4 and time.monotonic() < patience:
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    for share in ("2/2", "1/2"):
        subprocess.run([*command, share], check=True)
    assert store.missing() == []
    alike(rows_of(store), rows_of(whole))


@pytest.mark.slow
def test_ray_loses_a_node_and_no_row(table, tmp_path):
    ray = pytest.importorskip("ray")
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    whole = planned(table, tmp_path / "whole")
    do_parts(whole, "local", 1, no_log, silent)
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        store = planned(table, tmp_path / "ray")
        gone = []

        def lose(done, _total):
            if done and not gone:
                gone.append(done)
                cluster.remove_node(nodes[0], allow_graceful=False)

        do_parts(store, "ray", 2, no_log, lose)
        assert gone
        assert store.missing() == []
        alike(rows_of(store), rows_of(whole))
    finally:
        ray.shutdown()
        cluster.shutdown()
