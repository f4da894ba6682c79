"""corrected.parquet is the input but for the labels of relabelled rows, whatever the input."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hostile import tables
from labelclean import read_manifest
from labelclean.correction.actions import ACTIONS, RELABEL
from labelclean.correction.result import Audit
from labelclean.data.parquet import encode_parquet, parquet_metadata
from labelclean.outputs.schema import CORRECTED_COLUMNS
from labelclean.outputs.tables import corrected_table
from planted import command, opinions

quiet = settings(deadline=None, suppress_health_check=list(HealthCheck))


def write(folder: Path, columns: dict[str, list[object] | None], times: int = 1) -> Path:
    count = len(columns["label"] or [])
    filled = {
        name: [f"{i}.png" for i in range(count)] if values is None else values
        for name, values in columns.items()
    }
    table = pa.table(filled)
    pq.write_table(pa.concat_tables([table] * times), folder / "data.parquet")
    return folder / "data.parquet"


def check(before: pa.Table, after: pa.Table, relabelled: np.ndarray) -> None:
    names = before.column_names
    assert after.column_names == [*names, *CORRECTED_COLUMNS]
    for name in names:
        one, two = before[name], after[name]
        assert one.type == two.type
        if name != "label":
            assert one.equals(two)
    kept = np.flatnonzero(~relabelled)
    assert before["label"].take(kept).equals(after["label"].take(kept))
    assert after["label_given"].equals(before["label"])
    known = set(before["label"].to_pylist())
    assert set(after["label"].to_pylist()) <= known


@settings(quiet, max_examples=100)
@given(columns=tables(), data=st.data())
def test_any_decisions_about_any_table(columns, data):
    with tempfile.TemporaryDirectory() as name:
        path = write(Path(name), columns)
        manifest = read_manifest(path, need_images=False)
        count, size = len(manifest), len(manifest.classes)
        rows = np.array(
            data.draw(st.permutations(range(count)))[: data.draw(st.integers(0, count))]
        )
        rows = rows.astype(np.int64)
        draws = st.lists(st.sampled_from(ACTIONS), min_size=len(rows), max_size=len(rows))
        action = np.array(data.draw(draws), dtype=object)
        codes = st.lists(st.integers(0, size - 1), min_size=len(rows), max_size=len(rows))
        suggested = np.array(data.draw(codes), dtype=np.int64)
        half = np.full(len(rows), 0.5)
        audit = Audit(
            manifest, rows, suggested, action, half, half, half, {}, action,
            noise=None, noise_rate=None, noise_interval=(0.0, 1.0), diagnosis=(),
        )  # fmt: skip
        out = Path(name) / "out" / "corrected.parquet"
        out.parent.mkdir()
        out.write_bytes(encode_parquet(corrected_table(audit), parquet_metadata(manifest, out)))
        after = pq.read_table(out)
        moved = np.zeros(count, bool)
        moved[rows[action == RELABEL]] = True
        check(manifest.table, after, moved)
        expected = manifest.label.copy()
        expected[rows[action == RELABEL]] = suggested[action == RELABEL]
        assert after["label"].to_pylist() == manifest.label_values(expected)
        said = dict(zip(rows.tolist(), action.tolist(), strict=True))
        assert after["label_action"].to_pylist() == [said.get(row) for row in range(count)]
        if len(set(after["label"].to_pylist())) < 2:
            return  # rightly refused as a manifest
        again = read_manifest(out, need_images=False)
        assert (again.image_root / again.path[0]).parent == out.parent / ".."


@settings(quiet, max_examples=4)
@given(columns=tables())
@example(columns={"image": None, "label": ["\u058d", "$x", "a_b^c"]})
def test_the_command_keeps_hostile_columns(columns):
    with tempfile.TemporaryDirectory() as name:
        path = write(Path(name), columns, 30)
        manifest = read_manifest(path, need_images=False)
        true = manifest.label.copy()
        true[:5] = (true[:5] + 1) % len(manifest.classes)
        np.save(Path(name) / "probs.npy", opinions(true, len(manifest.classes)))
        run = Path(name) / "run"
        flags = ("--pred-probs", Path(name) / "probs.npy", "--set", "correction.mode=relabel")
        done = command("audit", path, "--out", run, *flags)
        assert done.exit_code == 0, done.output
        after = pq.read_table(run / "corrected.parquet")
        moved = np.array([word == "relabel" for word in after["label_action"].to_pylist()])
        check(manifest.table, after, moved)
        changed = np.array(after["label"].to_pylist()) != np.array(manifest.label_values())
        assert (changed == moved).all()
