"""Manifests of many files: tar shards, Parquet files and saved data sets; faults name the shard."""

import io
import json
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from labelclean.data.many_files import expand, is_pattern, pattern_root, plain_name
from labelclean.data.places import as_place
from labelclean.data.read import read_manifest
from labelclean.data.scan import scan_images
from labelclean.data.sources import open_source
from labelclean.data.write import write_manifest
from labelclean.errors import DataError


def png(value):
    buffer = io.BytesIO()
    Image.fromarray(np.full((20, 20, 3), value, np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def write_tar(path, files):
    with tarfile.open(path, "w") as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def write_shards(folder, shards=3, rows=4):
    for shard in range(shards):
        files = []
        for row in range(rows):
            number = shard * rows + row
            files += [
                (f"{number:04d}.png", png(number)),
                (f"{number:04d}.cls", str(number % 2).encode()),
                (f"{number:04d}.json", json.dumps({"site": f"s{number}"}).encode()),
            ]
        write_tar(folder / f"part-{shard:03d}.tar", files)
    return folder / f"part-{{000..{shards - 1:03d}}}.tar"


def test_braces_stand_for_ranges_and_lists():
    place = as_place("s3://b/{train,val}/x-{08..11}.tar")
    assert is_pattern(place)
    assert str(pattern_root(place)) == "s3://b"
    names = expand(place)
    assert names[0] == "train/x-08.tar"
    assert names[-1] == "val/x-11.tar"
    assert len(names) == 8
    assert expand(as_place("a-{8..11}.tar")) == [f"a-{n}.tar" for n in (8, 9, 10, 11)]
    assert plain_name(as_place("x/part-{000..099}.tar")) == "part"
    with pytest.raises(DataError, match="is no range of shards"):
        expand(as_place("a-{5..1}.tar"))
    with pytest.raises(DataError, match="more than 100,000 files"):
        expand(as_place("a-{0..9999}-{0..9999}.tar"))
    with pytest.raises(DataError, match="one bucket"):
        pattern_root(as_place("s3://b{0..1}/x"))


def test_tar_shards_are_rows_in_order(tmp_path):
    pattern = write_shards(tmp_path)
    by_pattern, by_folder = read_manifest(pattern), read_manifest(tmp_path)
    assert by_pattern.digest == by_folder.digest
    assert by_pattern.label.tolist() == [0, 1] * 6
    assert by_pattern.classes == (0, 1)
    assert by_pattern.path[5] == "part-001.tar/0005.png"
    assert by_pattern.table["site"].to_pylist()[11] == "s11"
    alone, together = (scan_images(open_source(by_pattern), workers=workers) for workers in (0, 2))
    assert alone.readable.all()
    assert np.array_equal(alone.digest, together.digest)
    single = read_manifest(tmp_path / "part-001.tar")
    assert open_source(single).load(1)[1] == open_source(by_pattern).load(5)[1]


def test_samples_without_picture_keep_their_row(tmp_path):
    files = [("a.cls", b"0"), ("b.png", png(1)), ("b.cls", b"1"), ("c.png", b"?"), ("c.cls", b"0")]
    write_tar(tmp_path / "s.tar", files)
    scan = scan_images(open_source(read_manifest(tmp_path / "s.tar")), workers=0)
    assert scan.readable.tolist() == [False, True, False]
    assert scan.reason[0] == "no picture of this name in the shard"


def test_exports_of_shards_are_read_again(tmp_path):
    given = read_manifest(write_shards(tmp_path))
    (tmp_path / "out").mkdir()
    for name in ("clean.csv", "clean.parquet", "clean.jsonl", "folder"):
        write_manifest(given, tmp_path / "out" / name)
        back = read_manifest(tmp_path / "out" / name)
        assert back.label_values() == given.label_values()
        assert open_source(back).load(7)[1] == open_source(given).load(7)[1]


def damaged(tmp_path, change):
    pattern = write_shards(tmp_path)
    change(tmp_path / "part-001.tar")
    with pytest.raises(DataError) as caught:
        read_manifest(pattern)
    assert "part-001.tar" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kept", [100, 512, 700, 1536, 3000, 10_000])
def test_a_truncated_shard_is_named(tmp_path, kept):
    def cut(path):
        path.write_bytes(path.read_bytes()[:kept])

    assert "truncated" in damaged(tmp_path, cut)


def test_faulty_shards_are_named(tmp_path):
    png_ = ("x.png", png(1))
    cases = {
        "does not exist": lambda path: path.unlink(),
        "comes a second time": lambda path: write_tar(
            path, [png_, ("x.cls", b"0"), ("y.cls", b"1"), ("x.json", b"{}")]
        ),
        "two files are called": lambda path: write_tar(path, [png_, png_]),
        "has no label": lambda path: write_tar(path, [png_]),
        "cannot be read": lambda path: write_tar(path, [png_, ("x.json", b"{")]),
        "call it something else": lambda path: write_tar(
            path, [png_, ("x.json", b'{"label": 1, "image": 2}')]
        ),
    }
    for number, (said, change) in enumerate(cases.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert said in damaged(folder, change), said


def test_a_shard_that_changes_while_it_is_read_ends_the_run(tmp_path):
    source = open_source(read_manifest(write_shards(tmp_path)))
    source.load(0)
    shard = tmp_path / "part-000.tar"
    shard.write_bytes(shard.read_bytes() + bytes(512))
    with pytest.raises(DataError, match=r"part-000\.tar was changed while it was being read"):
        source.load(1)


def test_a_link_out_of_the_root_is_no_shard(tmp_path):
    inside = tmp_path / "in"
    inside.mkdir()
    write_shards(tmp_path)
    table = pa.table({"image": ["s.tar/0000.png", "s.tar/0001.png"], "label": ["a", "b"]})
    pq.write_table(table, inside / "t.parquet")
    (inside / "s.tar").symlink_to(tmp_path / "part-000.tar")
    with pytest.raises(DataError, match="2 paths leave the folder"):
        read_manifest(inside / "t.parquet")
    open_ = read_manifest(inside / "t.parquet", allow_outside_root=True)
    assert scan_images(open_source(open_), workers=0).readable.all()


def write_parquets(folder, change=None):
    folder.mkdir(exist_ok=True)
    for part in range(3):
        cells = [{"bytes": png(4 * part + n), "path": f"{n}.png"} for n in range(4)]
        table = pa.table({"image": cells, "label": ["a", "b", "a", "b"]})
        table = change(table) if change is not None and part == 1 else table
        pq.write_table(table, folder / f"train-{part:05d}-of-00003.parquet")
    return folder


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    found = read_manifest(write_parquets(tmp_path / "data"))
    assert len(found) == 12
    assert scan_images(open_source(found), workers=0).readable.all()
    again = read_manifest(tmp_path / "data" / "train-{00000..00002}-of-00003.parquet")
    assert again.digest == found.digest
    folder = write_parquets(tmp_path / "odd", lambda table: table.append_column("x", [[1] * 4]))
    with pytest.raises(DataError, match=r"train-00001-of-00003\.parquet has other columns"):
        read_manifest(folder)
    (folder / "train-00002-of-00003.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"train-0000\d-of-00003\.parquet"):
        read_manifest(folder)


def save_to_disk(folder, split=None):
    """Write what `Dataset.save_to_disk` writes."""
    folder.mkdir(parents=True)
    files = []
    for part in range(2):
        cells = [{"bytes": png(part * 2 + n), "path": None} for n in range(2)]
        table = pa.table({"img": cells, "fine": [0, 1]})
        files.append({"filename": f"data-{part:05d}-of-00002.arrow"})
        sink = str(folder / files[-1]["filename"])
        with pa.OSFile(sink, "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    kinds = {"img": {"_type": "Image"}, "fine": {"names": ["ant", "bee"], "_type": "ClassLabel"}}
    (folder / "dataset_info.json").write_text(json.dumps({"features": kinds}))
    (folder / "state.json").write_text(json.dumps({"_data_files": files, "_split": split}))
    return folder


def test_a_saved_hugging_face_data_set_is_read_with_the_names_of_its_classes(tmp_path):
    found = read_manifest(save_to_disk(tmp_path / "saved"))
    assert found.label_values() == ["ant", "bee", "ant", "bee"]
    assert (found.image_col, found.label_col) == ("img", "fine")
    assert scan_images(open_source(found), workers=0).readable.all()


def test_what_the_library_itself_saves_is_read(tmp_path):
    datasets = pytest.importorskip("datasets")
    kinds = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["ant", "bee"])}
    )
    rows = {"image": [{"bytes": png(n), "path": None} for n in range(4)], "label": [0, 1, 1, 0]}
    saved = datasets.Dataset.from_dict(rows, features=kinds)
    saved.save_to_disk(str(tmp_path / "one"))
    found = read_manifest(tmp_path / "one")
    assert found.label_values() == ["ant", "bee", "bee", "ant"]
    datasets.DatasetDict({"train": saved}).save_to_disk(str(tmp_path / "all"))
    with pytest.raises(DataError, match=r"several splits \(train\); audit one of them"):
        read_manifest(tmp_path / "all")


def test_faults_of_saved_data_sets_name_the_file(tmp_path):
    folder = save_to_disk(tmp_path / "saved")
    shard = folder / "data-00001-of-00002.arrow"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:200])
    with pytest.raises(DataError, match=r"data-00001-of-00002\.arrow is no complete Arrow file"):
        read_manifest(folder)
    shard.unlink()
    with pytest.raises(DataError, match=r"data-00001-of-00002\.arrow cannot be read"):
        read_manifest(folder)
    state = {"_data_files": [{"filename": "../../x.arrow"}]}
    (folder / "state.json").write_text(json.dumps(state))
    with pytest.raises(DataError, match="names no data files of its own folder"):
        read_manifest(folder)
