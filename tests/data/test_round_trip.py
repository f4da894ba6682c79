"""Manifests survive every pair of forms: labels, other columns, types, order, identity."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from hostile import tables
from labelclean import Manifest, read_manifest, write_manifest
from labelclean.errors import OutputError

FORMS = (".parquet", ".csv", ".tsv", ".jsonl", "folder")
TEXT = frozenset({".csv", ".tsv"})


def make(folder: Path, columns: dict[str, list[object] | None]) -> Manifest:
    count = len(columns["label"] or [])
    (folder / "images").mkdir(parents=True)
    for i in range(count):
        Image.new("RGB", (1, 1), (i, 0, 0)).save(folder / "images" / f"{i}.bmp")
    filled = {
        name: [f"images/{i}.bmp" for i in range(count)] if values is None else values
        for name, values in columns.items()
    }
    pq.write_table(pa.table(filled), folder / "start.parquet")
    return read_manifest(folder / "start.parquet")


def target(folder: Path, step: str, form: str) -> Path:
    return folder / step / ("dataset" if form == "folder" else f"dataset{form}")


def as_text(values: list[object]) -> list[str]:
    """What is left of a column once types are gone: the text a person would see."""
    shown = {None: "", True: "true", False: "false"}
    return [
        shown[value] if value is None or isinstance(value, bool)
        else repr(value) if isinstance(value, float)
        else str(value)
        for value in values
    ]  # fmt: skip


def picture_numbers(manifest: Manifest) -> list[int]:
    """Which picture each row shows, read from the pixels themselves."""
    assert manifest.image_root is not None
    numbers = []
    for path in manifest.path:
        with Image.open(manifest.image_root / path) as image:
            numbers.append(image.convert("RGB").getpixel((0, 0))[0])
    return numbers


def assert_same(before: Manifest, after: Manifest, forms: set[str]) -> None:
    assert picture_numbers(after) == list(range(len(before)))
    renamed = "file_name" if "folder" in forms else "image"
    expected = [renamed if name == "image" else name for name in before.table.column_names]
    assert after.table.column_names == expected
    if forms & TEXT:
        assert as_text(after.label_values()) == as_text(before.label_values())
    else:
        assert after.label_values() == before.label_values()
        assert after.classes == before.classes
    for name in before.table.column_names:
        if name in ("image", "label"):
            continue
        one, two = before.table[name], after.table[name]
        if forms & TEXT:
            assert as_text(two.to_pylist()) == as_text(one.to_pylist())
        elif ".jsonl" in forms:
            assert two.to_pylist() == one.to_pylist()  # a column of nothing has no type in JSON
        else:
            assert two.equals(one)


@pytest.mark.parametrize(
    "first",
    [pytest.param(form, marks=pytest.mark.slow) if form == "folder" else form for form in FORMS],
)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(columns=tables(), second=st.sampled_from(FORMS))
def test_every_pair_of_forms(first, columns, second):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = make(folder, columns)
        one = write_manifest(before, target(folder, "one", first))
        middle = read_manifest(one, allow_outside_root=True)
        two = write_manifest(middle, target(folder, "two", second))
        after = read_manifest(two, allow_outside_root=True)
        assert_same(before, after, {first, second})


def test_relabelling_changes_the_label_and_nothing_else(tmp_path):
    columns = {"image": None, "label": ["a", "b", "a"], "=x": ["-1", "'", ""]}
    before = make(tmp_path, columns)
    after = before.with_label(np.array([0, 0, 1]))
    assert after.label_values() == ["a", "a", "b"]
    assert after.table.column("label").to_pylist() == ["a", "a", "b"]
    assert after.table.drop_columns("label").equals(before.table.drop_columns("label"))
    assert before.label_values() == ["a", "b", "a"]
    for form in FORMS:
        written = write_manifest(after, target(tmp_path, "out", form))
        again = read_manifest(written, allow_outside_root=True)
        assert again.label_values() == ["a", "a", "b"]


def test_parquet_in_another_folder_still_finds_its_images(tmp_path):
    before = make(tmp_path / "data", {"image": None, "label": [1, 2]})
    written = write_manifest(before, tmp_path / "elsewhere" / "deep" / "x.parquet")
    after = read_manifest(written)
    assert picture_numbers(after) == [0, 1]
    metadata = pq.read_schema(written).metadata[b"labelclean"]
    assert b'"image_root": "../../data"' in metadata


def test_arrays_round_trip_as_npz_and_as_folder(tmp_path):
    pixels = np.arange(2 * 3 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3, 3)
    np.savez(tmp_path / "a.npz", X=pixels, y=np.array(["b", "a"]), note=np.array([1, 2]))
    before = read_manifest(tmp_path / "a.npz")
    again = read_manifest(write_manifest(before, tmp_path / "b.npz"))
    assert again.arrays is not None
    assert np.array_equal(again.arrays, pixels)
    assert again.table.equals(before.table)
    folder = read_manifest(write_manifest(before, tmp_path / "folder"))
    assert folder.label_values() == ["b", "a"]
    for row, path in enumerate(folder.path):
        with Image.open(tmp_path / "folder" / path) as image:
            assert np.array_equal(np.asarray(image), pixels[row])
    with pytest.raises(OutputError, match=r"\.npz"):
        write_manifest(before, tmp_path / "c.csv")


def test_embedded_images_go_to_parquet_and_folder_but_not_to_text(tmp_path):
    make(tmp_path / "data", {"image": None, "label": [1, 2]})
    contents = [(tmp_path / "data" / "images" / f"{i}.bmp").read_bytes() for i in range(2)]
    embedded = pa.table({"image": [{"bytes": c, "path": "p"} for c in contents], "label": [5, 6]})
    pq.write_table(embedded, tmp_path / "e.parquet")
    manifest = read_manifest(tmp_path / "e.parquet")
    assert read_manifest(write_manifest(manifest, tmp_path / "f.parquet")).table.equals(embedded)
    assert picture_numbers(read_manifest(write_manifest(manifest, tmp_path / "g"))) == [0, 1]
    with pytest.raises(OutputError, match="holds bytes"):
        write_manifest(manifest, tmp_path / "h.csv")
    assert not (tmp_path / "h.csv").exists()


def test_json_refuses_what_it_cannot_carry(tmp_path):
    before = make(
        tmp_path, {"image": None, "label": [1, 2, 2], "x": [float("inf"), float("nan"), 0.5]}
    )
    with pytest.raises(OutputError, match="infinite"):
        write_manifest(before, tmp_path / "d.jsonl")
    for suffix in (".csv", ".parquet"):
        after = read_manifest(write_manifest(before, tmp_path / f"d{suffix}"))
        assert str(after.table["x"].to_pylist()) == "[inf, nan, 0.5]"


def test_a_folder_can_link_and_refuses_to_lose_a_sample(tmp_path):
    before = make(tmp_path / "data", {"image": None, "label": ["a/..", "A/.."]})
    linked = write_manifest(before, tmp_path / "linked", link=True)
    after = read_manifest(linked, allow_outside_root=True)
    assert all((tmp_path / "linked" / path).is_symlink() for path in after.path)
    assert len({path.split("/")[0].casefold() for path in after.path}) == 2
    with pytest.raises(OutputError, match="not an empty folder"):
        write_manifest(before, tmp_path / "linked")
    (tmp_path / "data" / "images" / "1.bmp").unlink()
    with pytest.raises(OutputError, match="row 1"):
        write_manifest(before, tmp_path / "copied")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "linked"]
