"""Reading every form of manifest, and every way an input can be wrong."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelclean import read_manifest
from labelclean.errors import DataError


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def csv_of(folder: Path, names: list[str], labels: list[str], extra: str = "") -> Path:
    rows = "".join(f"{name},{label}\n" for name, label in zip(names, labels, strict=True))
    return write(folder / "dataset.csv", f"image,label\n{rows}{extra}")


def test_csv(tmp_path, pictures):
    manifest = read_manifest(csv_of(tmp_path, pictures(3), ["cat", "dog", "cat"]))
    assert manifest.classes == ("cat", "dog")
    assert manifest.label.tolist() == [0, 1, 0]
    assert manifest.label.dtype == np.int64
    assert manifest.sample_id.tolist() == ["0", "1", "2"]
    assert manifest.path.tolist() == ["images/0.png", "images/1.png", "images/2.png"]
    assert manifest.image_root == tmp_path
    assert len(manifest.digest) == 64
    assert manifest.table.column_names == ["image", "label"]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["10", "9", "-1"], (-1, 9, 10)),
        (["007", "7", "8"], ("007", "7", "8")),
        (["1.0", "2.0", "1.0"], ("1.0", "2.0")),
        (["NA", "null", "nan"], ("NA", "nan", "null")),
        ([" a", "a", "b"], (" a", "a", "b")),
        (["=1+1", "😀", "x"], ("=1+1", "x", "😀")),
    ],
)
def test_labels_come_back_as_they_came_in(tmp_path, pictures, labels, classes):
    manifest = read_manifest(csv_of(tmp_path, pictures(3), labels))
    assert manifest.classes == classes
    assert [str(value) for value in manifest.label_values()] == labels


def test_columns_are_found_by_name_or_flag(tmp_path, pictures):
    names = pictures(2)
    path = write(
        tmp_path / "t.tsv",
        f"file\tkind\tsplit\tverified\tsample_id\tgroup\tsample_weight\n"
        f"{names[0]}\ta\ttrain\ttrue\tx1\tg\t0.5\n{names[1]}\tb\ttest\t\tx2\th\t2\n",
    )
    with pytest.raises(DataError, match=r"--label-col"):
        read_manifest(path)
    manifest = read_manifest(path, label_col="kind")
    assert manifest.image_col == "file"
    assert manifest.split is not None
    assert manifest.split.tolist() == ["train", "test"]
    assert manifest.verified.tolist() == [True, False]
    assert manifest.sample_id.tolist() == ["x1", "x2"]
    assert manifest.group is not None
    assert manifest.group.tolist() == ["g", "h"]
    assert manifest.sample_weight is not None
    assert manifest.sample_weight.tolist() == [0.5, 2.0]


def test_jsonl_keeps_types(tmp_path, pictures):
    names = pictures(2)
    rows = [{"image": names[0], "label": "1", "n": 1}, {"image": names[1], "label": "2", "m": [1]}]
    path = write(tmp_path / "d.jsonl", "\n".join(map(json.dumps, rows)) + "\n\n")
    manifest = read_manifest(path)
    assert manifest.classes == ("1", "2")
    assert manifest.table.to_pydict()["n"] == [1, None]
    rows = [{"image": name, "label": i} for i, name in enumerate(names)]
    manifest = read_manifest(write(tmp_path / "i.jsonl", "\n".join(map(json.dumps, rows))))
    assert manifest.classes == (0, 1)


def test_parquet_with_dictionary_labels_and_nested_columns(tmp_path, pictures):
    table = pa.table(
        {
            "path": pictures(3),
            "label": pa.array(["b", "a", "b"]).dictionary_encode(),
            "nested": [[1], [], [2, 3]],
            "when": pa.array([1, 2, 3], pa.timestamp("us")),
        }
    )
    pq.write_table(table, tmp_path / "d.parquet")
    manifest = read_manifest(tmp_path / "d.parquet")
    assert manifest.classes == ("a", "b")
    assert manifest.label.tolist() == [1, 0, 1]
    assert manifest.table.schema.equals(table.schema)


def test_parquet_with_embedded_images(tmp_path, pictures):
    contents = [(tmp_path / name).read_bytes() for name in pictures(2)]
    struct = [{"bytes": contents[0], "path": "a.png"}, {"bytes": contents[1], "path": None}]
    pq.write_table(pa.table({"image": struct, "label": [3, 1]}), tmp_path / "s.parquet")
    manifest = read_manifest(tmp_path / "s.parquet")
    assert manifest.path.tolist() == ["a.png", "row-1"]
    assert manifest.classes == (1, 3)
    binary = pa.array(contents, pa.binary())
    pq.write_table(pa.table({"image": binary, "label": [3, 1]}), tmp_path / "b.parquet")
    assert read_manifest(tmp_path / "b.parquet").path.tolist() == ["row-0", "row-1"]


def test_image_folder_has_lexicographic_classes(tmp_path, pictures):
    names = pictures(4)
    root = tmp_path / "root"
    for name, kind in zip(names, ["10", "2", "2/deep", "10"], strict=True):
        (root / kind).mkdir(parents=True, exist_ok=True)
        (tmp_path / name).rename(root / kind / Path(name).name)
    (root / "2" / "notes.txt").write_text("not a picture")
    (root / ".hidden").mkdir()
    manifest = read_manifest(root)
    assert manifest.classes == ("10", "2")
    assert manifest.path.tolist() == ["10/0.png", "10/3.png", "2/1.png", "2/deep/2.png"]
    assert manifest.label.tolist() == [0, 0, 1, 1]
    (root / "loose.png").write_bytes((root / "2" / "1.png").read_bytes())
    with pytest.raises(DataError, match=r"outside any class folder \(loose.png\)"):
        read_manifest(root)
    assert len(read_manifest(root, need_labels=False)) == 5


def test_hugging_face_folder(tmp_path, pictures):
    names = pictures(2)
    write(tmp_path / "metadata.csv", f"file_name,label\n{names[0]},a\n{names[1]},b\n")
    manifest = read_manifest(tmp_path)
    assert manifest.image_col == "file_name"
    assert manifest.classes == ("a", "b")
    write(tmp_path / "metadata.jsonl", "{}")
    with pytest.raises(DataError, match="keep one metadata file"):
        read_manifest(tmp_path)
    (tmp_path / "metadata.jsonl").unlink()
    write(tmp_path / "metadata.csv", "name,label\nx,a\n")
    with pytest.raises(DataError, match="file_name"):
        read_manifest(tmp_path)


def test_npz_of_images_and_of_features(tmp_path):
    images = np.zeros((3, 4, 4, 3), np.uint8)
    np.savez(tmp_path / "i.npz", X=images, y=np.array(["a", "b", "a"]), split=["x", "y", "z"])
    manifest = read_manifest(tmp_path / "i.npz")
    assert manifest.classes == ("a", "b")
    assert manifest.has_images
    assert manifest.split is not None
    np.savez(tmp_path / "f.npz", X=np.ones((3, 5), np.float32), y=np.array([1, 2, 1]))
    manifest = read_manifest(tmp_path / "f.npz")
    assert not manifest.has_images
    assert manifest.arrays is not None
    assert manifest.arrays.shape == (3, 5)
    assert manifest.classes == (1, 2)


def test_limit_and_rows_without_labels(tmp_path, pictures):
    path = csv_of(tmp_path, pictures(4), ["a", "b", "a", "b"])
    assert len(read_manifest(path, limit=2)) == 2
    assert read_manifest(path, need_labels=False).label.tolist() == [-1] * 4


def fails(path: Path, *words: str, **flags: object) -> None:
    with pytest.raises(DataError) as error:
        read_manifest(path, **flags)  # type: ignore[arg-type]
    for word in words:
        assert word in str(error.value), str(error.value)


def test_bad_tables_are_refused_with_what_where_and_remedy(tmp_path, pictures):
    names = pictures(12)
    fails(tmp_path / "none.csv", "none.csv", "does not exist")
    fails(write(tmp_path / "x.xlsx", "x"), ".xlsx", ".csv", ".parquet")
    fails(write(tmp_path / "a.csv", "img,label\nx,a\n"), "'img'", "--image-col", "image_path")
    fails(write(tmp_path / "a.csv", "image;label\nx;a\n"), "separator")
    fails(csv_of(tmp_path, names[:2], ["a", "a"]), "'a'", "two classes", "--label-col")
    blanks = ["a", "b", *[" "] * 10]
    fails(csv_of(tmp_path, names, blanks), "10 labels", "rows 2, 3, 4, 5, 6, 7, 8, 9, 10, 11")
    fails(csv_of(tmp_path, ["", " "], ["a", "b"]), "2 image paths are blank", "rows 0, 1")
    fails(csv_of(tmp_path, ["no/1.png", "no/2.png"], ["a", "b"]), "none of the 2", "--image-root")
    fails(csv_of(tmp_path, names[:2], ["a", "b"]), "not a folder", image_root=tmp_path / "nowhere")
    fails(write(tmp_path / "s.csv", f"image,label,p_error\n{names[0]},a,1\n"), "p_error", "rename")
    duplicate = f"image,label,sample_id\n{names[0]},a,7\n{names[1]},b,7\n{names[2]},b,\n"
    fails(write(tmp_path / "i.csv", duplicate), "row 1: '7' as in row 0", "row 2: blank")
    verified = f"image,label,verified\n{names[0]},a,maybe\n{names[1]},b,no\n"
    fails(write(tmp_path / "v.csv", verified), "row 0: 'maybe'", "true or false")
    weight = f"image,label,sample_weight\n{names[0]},a,-1\n{names[1]},b,x\n"
    fails(write(tmp_path / "w.csv", weight), "row 0: '-1'", "row 1: 'x'")


def test_bad_typed_tables(tmp_path, pictures):
    names = pictures(3)

    def parquet(**columns: object) -> Path:
        pq.write_table(pa.table(columns), tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    fails(parquet(image=names, label=[["a"], ["b"], []]), "multi-label", "one label per image")
    fails(parquet(image=names, label=[1.0, 2.0, 1.0]), "double", "text or integers")
    fails(parquet(image=names, label=[True, False, True]), "bool")
    fails(parquet(image=names, label=["a", None, "b"]), "1 labels are missing", "rows 1")
    fails(parquet(image=names, label=pa.nulls(3)), "3 labels are missing")
    fails(parquet(image=pa.array([], pa.string()), label=pa.array([], pa.string())), "no rows")
    whole = parquet(image=names, label=["a", "b", "a"]).read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    fails(tmp_path / "cut.parquet", "complete Parquet", "write it again")
    frame = pd.DataFrame({"image": names, "label": ["a", np.nan, "b"]})
    frame.to_csv(tmp_path / "nan.csv", index=False)
    fails(tmp_path / "nan.csv", "1 labels are missing or blank (rows 1")
    mixed = '{"image":"images/0.png","label":1}\n{"image":"images/1.png","label":"a"}\n'
    fails(write(tmp_path / "m.jsonl", mixed), "'label'", "int, str")
    fails(write(tmp_path / "b.jsonl", '{"image":\n'), "line 1", "not valid JSON")
    fails(write(tmp_path / "l.jsonl", "[1]\n"), "line 1", "object")
    fails(write(tmp_path / "e.jsonl", "\n"), "no rows")


def test_bad_arrays(tmp_path):
    def npz(**arrays: object) -> Path:
        np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
        return tmp_path / "a.npz"

    y = np.array([0, 1])
    fails(npz(X=np.zeros((2, 3))), "no array y")
    fails(npz(X=np.zeros((2, 3, 3, 3)), y=y), "float64", "uint8")
    fails(npz(X=np.array([[1.0, np.nan], [1.0, 2.0]]), y=y), "not finite in 1 rows", "rows 0")
    fails(npz(X=np.zeros((3, 2)), y=y), "shape (2,)", "(3,)")
    fails(npz(X=np.zeros((2, 2)), y=np.array([{}, {}], dtype=object)), "without Python objects")
    (tmp_path / "cut.npz").write_bytes(npz(X=np.zeros((2, 3)), y=y).read_bytes()[:100])
    fails(tmp_path / "cut.npz", "not a readable .npz")


def test_paths_stay_below_the_root(tmp_path, pictures):
    names = pictures(2)
    inner = tmp_path / "inner"
    inner.mkdir()
    outside = f"image,label\n../{names[0]},a\n{tmp_path / names[1]},b\n"
    path = write(inner / "d.csv", outside)
    fails(path, "2 paths leave", "row 0", "row 1", "--allow-outside-root")
    assert len(read_manifest(path, allow_outside_root=True)) == 2
    empty = tmp_path / "empty"
    empty.mkdir()
    fails(empty, "no images")


def test_a_linked_class_folder_does_not_escape(tmp_path, pictures):
    pictures(2)
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (tmp_path / "images" / "0.png").rename(root / "a" / "0.png")
    (root / "b").symlink_to(tmp_path / "images", target_is_directory=True)
    fails(root, "leads out of", "--allow-outside-root")
    assert read_manifest(root, allow_outside_root=True).classes == ("a", "b")
    (root / "b").unlink()
    (root / "b").symlink_to(root, target_is_directory=True)
    fails(root, "contains it")
