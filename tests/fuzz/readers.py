"""Readers under fire: each takes bytes, and either understands them or raises our own error."""

import hashlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from fuzz import inputs
from labelclean.correction.decisions import DECISIONS
from labelclean.data.read import read_manifest
from labelclean.errors import LabelCleanError
from labelclean.models.saved import load_model
from labelclean.recipe import load_recipe
from labelclean.runs.again import stored_evidence
from labelclean.runs.decisions_file import read_decisions
from labelclean.runs.digests import file_digests
from labelclean.runs.reading import load_run, open_audited
from labelclean.workflows.export import decide_rows
from labelclean.workflows.observe import prepare
from planted import command, plant


@dataclass(frozen=True)
class Reader:
    """What is read, and the inputs it is given."""

    read: Callable[[tuple[str, bytes]], None]
    strategy: st.SearchStrategy[tuple[str, bytes]]


def manifests(folder: Path) -> Reader:
    """Tables in every form."""
    table = pa.table({"image": ["a.png", "b.png"], "label": ["x", "y"], "split": ["test", ""]})
    parquet, archive = io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet)
    np.savez(archive, X=np.zeros((2, 3), np.float32), y=np.array([0, 1]))
    seeds = {
        "csv": [b"image,label,split\na.png,x,test\nb.png,y,\n", b'label,"a b"\n"x\ny",2\nz,3\n'],
        "tsv": [b"image\tlabel\na\tx\nb\ty\n"],
        "jsonl": [b'{"image": "a", "label": 1}\n{"image": "b", "label": 2}\n'],
        "parquet": [parquet.getvalue()],
        "npz": [archive.getvalue()],
    }
    kinds = [st.tuples(st.just(kind), inputs.mutated(found)) for kind, found in seeds.items()]
    tables = st.tuples(st.just("csv"), inputs.csv_tables())
    objects = st.lists(inputs.values, min_size=1, max_size=3).map(
        lambda lines: "\n".join(map(json.dumps, lines)).encode()
    )

    def read(given: tuple[str, bytes]) -> None:
        kind, data = given
        path = folder / f"table.{kind}"
        path.write_bytes(data)
        found = read_manifest(path, need_images=False)
        count = found.table.num_rows
        assert len(found) == count == len(found.path) == len(found.sample_id)
        assert len(set(found.sample_id)) == count, "a sample is its row"
        assert found.label.min() >= 0
        assert found.label.max() < len(found.classes)

    return Reader(read, st.one_of(*kinds, tables, st.tuples(st.just("jsonl"), objects)))


def recipes(folder: Path) -> Reader:
    """TOML files and overrides."""
    seeds = [b"[training]\nepochs = 3\n[loss]\nname = 'gce'\nq = 0.5\n", b"[data]\nlimit = 5\n"]
    override = st.tuples(st.just("set"), inputs.text.map(lambda t: t.encode("utf-8", "replace")))

    def read(given: tuple[str, bytes]) -> None:
        kind, data = given
        if kind == "set":
            load_recipe(None, [f"training.epochs={data.decode()}", data.decode()])
            return
        (folder / "recipe.toml").write_bytes(data)
        prepare(load_recipe(folder / "recipe.toml"))

    files = st.one_of(inputs.mutated(seeds), inputs.toml_recipes())
    return Reader(read, st.one_of(override, st.tuples(st.just("file"), files)))


def decisions(folder: Path) -> Reader:
    """decisions.jsonl."""
    data = plant(folder, rows=6, planted=1)
    manifest = read_manifest(data.table, need_images=False)
    seed = b'{"row": 1, "sample_id": "s1", "decision": "relabel", "label": "ant", "time": ""}\n'

    def read(given: tuple[str, bytes]) -> None:
        (folder / "decisions.jsonl").write_bytes(given[1])
        for row, decision in read_decisions(folder / "decisions.jsonl", manifest).items():
            assert 0 <= row < len(manifest)
            assert decision.what in DECISIONS

    lines = st.lists(inputs.decision_lines, min_size=1, max_size=4).map(
        lambda found: "\n".join(found).encode("utf-8", "surrogatepass")
    )
    files = st.one_of(inputs.mutated([seed, 3 * seed]), lines)
    return Reader(read, st.tuples(st.just("jsonl"), files))


def run_folders(folder: Path) -> Reader:
    """A finished run of which one file is not what it was."""
    rng = np.random.default_rng(0)
    label = np.arange(30) % 3
    np.savez(folder / "d.npz", X=(rng.normal(size=(30, 4)) + np.eye(3, 4)[label]), y=label)
    run = folder / "run"
    flags = ("--loss", "cce", "--epochs", 1, "--threads", 1)
    assert command("audit", folder / "d.npz", "--out", run, *flags).exit_code == 0
    names = ("run.json", "issues.parquet", "records.parquet", "model/config.json",
             "model/model.safetensors")  # fmt: skip
    good = {name: (run / name).read_bytes() for name in names}
    shutil.copytree(run, folder / "copy")
    run = folder / "copy"
    kinds = [st.tuples(st.just(name), inputs.mutated([data])) for name, data in good.items()]
    kinds += [
        st.tuples(st.just(name), inputs.altered_json(good[name]))
        for name in ("run.json", "model/config.json")
    ]

    def read(given: tuple[str, bytes]) -> None:
        name, data = given
        (run / name).write_bytes(data)
        if name == "model/model.safetensors":
            config = json.loads(good["model/config.json"])
            config["labelclean"]["model_sha256"] = hashlib.sha256(data).hexdigest()
            (run / "model/config.json").write_text(json.dumps(config))
        if name != "run.json":
            facts = json.loads(good["run.json"])
            (run / "run.json").write_text(json.dumps({**facts, "files": file_digests(run)}))
        refusals = []
        try:
            for use in (_judge, load_run, lambda path: load_model(path / "model")):
                try:
                    use(run)
                except LabelCleanError as error:
                    refusals.append(error)
        finally:
            for known, content in good.items():
                (run / known).write_bytes(content)
        if refusals:
            raise refusals[0]

    return Reader(read, st.one_of(*kinds))


def _judge(run: Path) -> None:
    opened = open_audited(run)
    outcome = decide_rows(opened)
    assert len(outcome.label) == len(opened.manifest)
    stored_evidence(opened)


READERS = {"manifest": manifests, "recipe": recipes, "decisions": decisions, "run": run_folders}
