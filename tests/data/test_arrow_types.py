"""Columns of every Arrow type come through or are refused; generated tables are the witnesses."""

import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faults.schemas import run_schemas
from labelclean.data.read import read_manifest
from labelclean.data.write import write_manifest
from labelclean.errors import DataError

pytestmark = pytest.mark.usefixtures("plain_figures")


@pytest.mark.slow
def test_generated_tables_come_through_or_are_refused(tmp_path):
    tally = run_schemas(tmp_path, 60, seed=1_000_000)
    assert tally.faults == []
    assert tally.counts["reverted"] >= 20
    assert tally.counts["audited"] >= 1


def written(folder, column: pa.Array, label: pa.Array | None = None):
    label = pa.array(["x", "y", "x"]) if label is None else label
    images = pa.array(["0.png", "1.png", "2.png"])
    table = pa.table({"image": images, "label": label, "note": column})
    pq.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


def test_views_become_plain_and_uuids_text(tmp_path):
    views = pa.array(["a", None, "c"], pa.string_view())
    manifest = read_manifest(written(tmp_path, views), need_images=False)
    assert manifest.table.schema.field("note").type == pa.string()
    assert manifest.with_rows(np.array([2, 0])).table["note"].to_pylist() == ["c", "a"]
    ids = [uuid.UUID(int=row) for row in range(3)]
    column = pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([one.bytes for one in ids], pa.binary(16))
    )
    manifest = read_manifest(written(tmp_path, column), need_images=False)
    for form in ("jsonl", "csv"):
        write_manifest(manifest, tmp_path / f"o.{form}")
        again = read_manifest(tmp_path / f"o.{form}", need_images=False)
        assert again.table["note"].to_pylist() == [str(one) for one in ids]


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array([2**60, 1, 2]).cast(pa.timestamp("ms")), "too large"),
        (pa.array([1, 2, 3], pa.timestamp("us", "Foo/Bar")), "zoneinfo"),
        (pa.StructArray.from_arrays([pa.array([1, 2, 3])] * 2, ["a", "a"]), "two fields"),
    ],
)
def test_values_that_cannot_be_told_are_refused_at_the_door(tmp_path, column, why):
    with pytest.raises(DataError, match=rf"'note' of type .*{why}"):
        read_manifest(written(tmp_path, column), need_images=False)


def test_names_that_stand_twice_and_labels_beyond_64_bits(tmp_path):
    column = pa.array([1, 2, 3])
    table = pa.Table.from_arrays([column] * 3, names=["image", "label", "label"])
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(DataError, match="columns with the same name: label"):
        read_manifest(tmp_path / "t.parquet", need_images=False)
    label = pa.array([2**64 - 1, 1, 1], pa.uint64())
    with pytest.raises(DataError, match="must fit 64 bits"):
        read_manifest(written(tmp_path, column, label), need_images=False)
