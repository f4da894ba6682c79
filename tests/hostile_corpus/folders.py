"""Hostile run folders: what a stranger may hand over as a finished or unfinished run."""

import hashlib
import json
import pickle
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from finished_runs import restated
from hostile_corpus.case import Case, Poison, labels
from planted import command

ROWS = 60


def build(folder: Path) -> Iterator[Case]:
    """Write hostile copies of one finished run; unpickling one leaves the file `ran`."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    features = (rng.normal(size=(ROWS, 4)) + 3 * np.eye(3, 4)[labels(ROWS)]).astype(np.float32)
    np.savez(folder / "data.npz", X=features, y=labels(ROWS))
    flags = ("--loss", "cce", "--epochs", 2, "--threads", 1)
    done = command("audit", folder / "data.npz", "--out", folder / "good", *flags)
    if done.exit_code:
        raise RuntimeError(done.output)
    yield from _facts(folder)
    yield from _tables(folder)
    yield from _models(folder)
    yield from _unfinished(folder, flags)


def _copy(folder: Path) -> Path:
    run = folder / f"run{len(list(folder.glob('run*')))}"
    shutil.copytree(folder / "good", run)
    return run


def _spoilt(folder: Path, file: str) -> Path:
    run = _copy(folder)
    (run / file).write_bytes((run / file).read_bytes()[:-30])
    return run


def _facts(folder: Path) -> Iterator[Case]:
    good = json.loads((folder / "good/run.json").read_bytes())
    changes: dict[str, object] = {
        "no JSON": b"\x80\x04K\x01.",
        "nested 100,000 deep": b"[" * 100_000,
        "an integer of 5,000 digits": b'{"schema_version": ' + b"9" * 5000 + b"}",
        "a list": b"[]",
        "of another version": {**good, "schema_version": 99},
        "without input": {key: value for key, value in good.items() if key != "input"},
        "input is a list": {**good, "input": [1]},
        "digest is a number": {**good, "input": {**good["input"], "digest": 3}},
        "path is a list": {**good, "input": {**good["input"], "path": ["x"]}},
        "classes of lists": {**good, "classes": [["a"], ["b"]]},
        "columns is text": {**good, "columns": "label"},
        "recipe of numbers": {**good, "recipe": {"data": 1, "model": 2}},
        "recipe with unknown keys": {**good, "recipe": {**good["recipe"], "data": {"evil": 1}}},
        "the manifest is elsewhere": {**good, "input": {**good["input"], "path": "../gone.npz"}},
        "another digest": {**good, "input": {**good["input"], "digest": "0" * 64}},
    }
    for name, content in changes.items():
        run = _copy(folder)
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        (run / "run.json").write_bytes(data)
        yield Case(f"run.json: {name}", ("report", run))
        yield Case(f"run.json, retrain: {name}", ("retrain", run, "--threads", 1))


def _tables(folder: Path) -> Iterator[Case]:
    def swap(file: str, change: Callable[[pa.Table], pa.Table]) -> Path:
        run = _copy(folder)
        table = pq.read_table(run / file)
        made = change(table)
        pq.write_table(made.replace_schema_metadata(table.schema.metadata), run / file)
        return restated(run)

    def column(name: str, values: object) -> Callable[[pa.Table], pa.Table]:
        return lambda table: table.set_column(
            table.column_names.index(name), name, pa.array(values)
        )

    words = [f"w{row}" for row in range(ROWS)]
    issues = {
        "rows of text": column("row", words),
        "rows beyond the end": column("row", list(range(1000, 1000 + ROWS))),
        "rows that are missing": column("row", [None] * ROWS),
        "one row for all": column("row", [0] * ROWS),
        "unknown labels": column("label_suggested", words),
        "numbers as action": column("action", list(range(ROWS))),
        "p_error of text": column("p_error", words),
        "half of the rows": lambda table: table.slice(0, ROWS // 2),
        "no column p_error": lambda table: table.drop_columns("p_error"),
    }
    for name, change in issues.items():
        run = swap("issues.parquet", change)
        yield Case(f"issues.parquet: {name}", ("export", run, run / "../out.npz", "--overwrite"))
    records = {
        "rows of text": column("row", words),
        "rows beyond the end": column("row", list(range(1000, 1000 + ROWS))),
        "negative rows": column("row", list(range(-ROWS, 0))),
        "posteriors of text": column("posterior", words),
        "posteriors of another width": column("posterior", [[1.0]] * ROWS),
        "posteriors of NaN": lambda table: _posteriors(
            table, np.full((ROWS, 3), np.nan, np.float32)
        ),
        "posteriors of 7": lambda table: _posteriors(table, np.full((ROWS, 3), 7, np.float32)),
        "signals of text": column("signal_p_given", words),
        "half of the rows": lambda table: table.slice(0, ROWS // 2),
        "every row twice": lambda table: pa.concat_tables([table, table]),
    }
    for name, change in records.items():
        yield Case(f"records.parquet: {name}", ("report", swap("records.parquet", change)))
    run = _copy(folder)
    table = pq.read_table(run / "records.parquet")
    for name, notes in {
        "no JSON": b"{",
        "lists": b"[]",
        "wrong types": b'{"fusion": 3}',
    }.items():
        meta = {**table.schema.metadata, b"labelclean.evidence": notes}
        target = _copy(folder)
        pq.write_table(table.replace_schema_metadata(meta), target / "records.parquet")
        yield Case(f"records.parquet: notes of {name}", ("report", restated(target)))
    for file, asks in (("records.parquet", "report"), ("corrected.parquet", "retrain")):
        run = _copy(folder)
        table = pq.read_table(run / file)
        foreign = {b"labelclean": json.dumps({"input_digest": "1" * 64}).encode()}
        pq.write_table(
            table.replace_schema_metadata({**table.schema.metadata, **foreign}), run / file
        )
        yield Case(f"{file} of another data set", (asks, restated(run)), words="belong")
        yield Case(f"{file}: the digest tells", (asks, _spoilt(folder, file)), words="belong")
        yield Case(f"{file}: truncated", (asks, restated(_spoilt(folder, file))))


def _posteriors(table: pa.Table, values: np.ndarray) -> pa.Table:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 3)
    return table.set_column(table.column_names.index("posterior"), "posterior", lists)


def _models(folder: Path) -> Iterator[Case]:
    good = (folder / "good/model/model.safetensors").read_bytes()

    def header(entries: dict[str, object]) -> bytes:
        text = json.dumps(entries).encode()
        return struct.pack("<Q", len(text)) + text + bytes(64)

    part = {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}
    files = {
        "a pickle that runs code": pickle.dumps(Poison(folder / "ran")),
        "overlapping tensors": header(
            {"head.classifier.weight": part, "head.classifier.bias": part}
        ),
        "offsets beyond the end": header({"a": {**part, "data_offsets": [0, 10**9]}}),
        "a header of 2^60 bytes": struct.pack("<Q", 2**60) + b"{}",
        "a header nested deep": struct.pack("<Q", 100_000) + b"[" * 100_000,
        "negative shapes": header({"a": {**part, "shape": [-3, -4]}}),
        "unknown tensors": header({"evil": part}),
        "truncated": good[: len(good) // 2],
        "empty": b"",
    }
    for name, content in files.items():
        run = _copy(folder)
        (run / "model/model.safetensors").write_bytes(content)
        config = json.loads((run / "model/config.json").read_bytes())
        # An attacker states the right checksum of the wrong file.
        config["labelclean"]["model_sha256"] = hashlib.sha256(content).hexdigest()
        (run / "model/config.json").write_text(json.dumps(config))
        restated(run)
        asks = ("predict", run, folder / "data.npz", "--out", folder / "said.parquet")
        yield Case(f"model.safetensors: {name}", asks)
    run = _copy(folder)
    config = json.loads((run / "model/config.json").read_bytes())
    config["architecture"] = "hf-hub:somebody/something"
    (run / "model/config.json").write_text(json.dumps(config))
    restated(run)
    asks = ("predict", run, folder / "data.npz", "--out", folder / "said.parquet")
    yield Case("config.json asks for a model from the network", asks)


def _unfinished(folder: Path, flags: tuple[object, ...]) -> Iterator[Case]:
    poison = pickle.dumps(Poison(folder / "ran"))

    def begun(name: str, content: dict[str, bytes]) -> Case:
        run = folder / f"begun{len(list(folder.glob('begun*')))}"
        key = json.loads((folder / "key.json").read_bytes())
        (run / ".work").mkdir(parents=True)
        (run / ".work/key.json").write_text(json.dumps(key))
        for path, data in content.items():
            (run / ".work" / path).parent.mkdir(exist_ok=True)
            (run / ".work" / path).write_bytes(data)
        asks = ("audit", folder / "data.npz", "--out", run, *flags, "--resume")
        return Case(f"resume: {name}", asks)

    _steal_key(folder, flags)
    weights = (folder / "good/model/model.safetensors").read_bytes()
    yield begun("key.json is no JSON", {"key.json": b"\x80"})
    yield begun("key.json is a list", {"key.json": b"[]"})
    saved = {"epoch-00000/state.pt": poison, "epoch-00000/model.safetensors": weights}
    yield begun("a checkpoint that runs code", saved)
    yield begun("an empty checkpoint", {"epoch-00000/state.pt": b""})
    yield begun("an array that is a pickle", {"p_given.npy": poison})
    yield begun("an array of another shape", {"p_given.npy": b"\x93NUMPY\x01\x00\x00\x00"})


def _steal_key(folder: Path, flags: tuple[object, ...]) -> None:
    """Keep the key of a run that was interrupted."""
    from labelclean.runs.folder import RunFolder

    kept = []
    real = RunFolder.finish

    def finish(this: RunFolder, facts: object) -> None:
        kept.append((this.work / "key.json").read_bytes())
        real(this, facts)

    RunFolder.finish = finish
    try:
        command("audit", folder / "data.npz", "--out", folder / "again", *flags)
    finally:
        RunFolder.finish = real
    (folder / "key.json").write_bytes(kept[0])
