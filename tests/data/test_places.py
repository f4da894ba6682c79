"""Manifests and pictures behind URLs: read as local ones, kept inside their root, never guessed."""

import io
import tarfile

import numpy as np
import pytest
from PIL import Image

from labelclean.data.images import DEFAULT_LIMITS, ImageError
from labelclean.data.places import RemotePath, StoreError, as_place, join
from labelclean.data.read import read_manifest
from labelclean.data.remote import RemoteBounds
from labelclean.data.scan import scan_images
from labelclean.data.sources import open_source
from labelclean.data.write import write_manifest
from labelclean.errors import ConfigError, DataError

fsspec = pytest.importorskip("fsspec")


def png(value):
    buffer = io.BytesIO()
    Image.fromarray(np.full((20, 30, 3), value, np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture(name="store")
def _store():
    """A store in memory with a table of four pictures, one of them missing."""
    store = fsspec.filesystem("memory")
    for number in range(3):
        store.pipe_file(f"memory://box/data/images/{number}.png", png(50 * number))
    lines = "".join(f"images/{number}.png,{'ab'[number % 2]}\n" for number in range(4))
    store.pipe_file("memory://box/data/table.csv", b"image,label\n" + lines.encode())
    yield store
    store.rm("memory://box", recursive=True)


def test_a_url_is_a_place_and_a_path_stays_a_path(tmp_path):
    place = as_place("s3://bucket/a/b.csv")
    assert place == RemotePath("s3", "bucket/a/b.csv")
    assert (place.name, place.suffix, place.stem) == ("b.csv", ".csv", "b")
    assert str(place.parent) == "s3://bucket/a"
    assert str(place.parent.parent.parent.parent) == "s3://bucket"
    assert as_place(f"file://{tmp_path}") == tmp_path
    assert as_place(str(tmp_path)) == tmp_path
    assert join(tmp_path, "s3://b/c") == RemotePath("s3", "b/c")
    assert join(tmp_path, "x") == tmp_path / "x"


@pytest.mark.parametrize("url", ["ssh://host/x", "s3://a::zip://b", "reference://x"])
def test_other_urls_are_refused(url):
    with pytest.raises(ConfigError, match="is no URL that is read here"):
        as_place(url)


def test_credentials_in_a_url_are_refused_and_not_repeated():
    with pytest.raises(ConfigError, match="carries a name or a password") as caught:
        as_place("https://me:secret@host/x.csv")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("a.png", True), ("x/../a.png", True), ("x\\a.png", True), ("memory://box/data/a", True),
        ("../a.png", False), ("x/../../a.png", False), ("/box/other", False),
        ("memory://box/other/a", False), ("memory://box/data/../../a", False),
        ("memory://box/database/a", False), ("s3://box/data/a", False), ("file:///etc/x", False),
        ("ssh://x/y", False),
    ],
)  # fmt: skip
def test_paths_stay_inside_their_root(text, inside):
    bounds = RemoteBounds(RemotePath("memory", "box/data"), allow_outside=False)
    assert bounds.escapes(text) == (not inside)
    if inside:
        assert bounds.locate(text).startswith("memory://box/data/")
    else:
        with pytest.raises(DataError):
            bounds.locate(text)


def test_a_table_in_a_store_reads_as_on_disk(store, tmp_path):
    for name in store.find("memory://box/data"):
        target = tmp_path / name.removeprefix("/box/data/")
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(store.cat_file(name))
    far, near = read_manifest("memory://box/data/table.csv"), read_manifest(tmp_path / "table.csv")
    assert far.digest == near.digest
    assert far.table == near.table
    one, other = (scan_images(open_source(it), workers=0) for it in (far, near))
    assert one.readable.tolist() == [True, True, True, False]
    assert one.reason.tolist() == other.reason.tolist()
    assert np.array_equal(one.digest, other.digest)
    together = scan_images(open_source(far), workers=2)
    assert np.array_equal(one.digest, together.digest)


def test_a_folder_in_a_store_is_classes(store):
    for name in ("cat/1.png", "dog/2.png"):
        store.pipe_file(f"memory://box/folder/{name}", png(9))
    found = read_manifest("memory://box/folder")
    assert found.path.tolist() == ["cat/1.png", "dog/2.png"]
    assert found.classes == ("cat", "dog")


def test_rows_outside_the_root_are_refused_as_local_ones_are(store):
    store.pipe_file("memory://box/data/out.csv", b"image,label\n../x.png,a\nimages/1.png,b\n")
    with pytest.raises(DataError, match=r"1 paths leave the folder memory://box/data \(row 0"):
        read_manifest("memory://box/data/out.csv")


def test_no_store_is_opened_because_a_file_names_it(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("image,label,labelclean_export\nx,a,http://host/z\ny,b,http://host/z\n")
    with pytest.raises(DataError, match="No store is opened because a file names it"):
        read_manifest(table)
    plain = tmp_path / "plain.csv"
    plain.write_text("image,label\nhttp://host/x.png,a\nhttp://host/y.png,b\n")
    with pytest.raises(DataError):
        read_manifest(plain)


def test_pictures_above_the_cap_are_not_read_whole(store):
    store.pipe_file("memory://box/data/images/0.png", png(0) + bytes(5000))
    limits = type(DEFAULT_LIMITS)(max_bytes=1000)
    source = open_source(read_manifest("memory://box/data/table.csv"), limits)
    assert len(source.read(0)) == 1001
    with pytest.raises(ImageError, match="more than 1000 bytes"):
        source.load(0)


@pytest.mark.parametrize("name", ["clean.csv", "clean.parquet", "clean.jsonl"])
@pytest.mark.parametrize("folder", ["data", "elsewhere"])
def test_what_is_written_to_a_store_is_read_back(store, name, folder):
    given = read_manifest("memory://box/data/table.csv")
    write_manifest(given, f"memory://box/{folder}/{name}")
    back = read_manifest(f"memory://box/{folder}/{name}")
    assert back.table.column_names == given.table.column_names
    assert back.table.to_pylist() == given.table.to_pylist()
    assert open_source(back).load(1)[1] == open_source(given).load(1)[1]


def test_a_store_s_pictures_become_a_folder_here_and_there(store, tmp_path):
    store.pipe_file("memory://box/data/images/3.png", png(7))
    given = read_manifest("memory://box/data/table.csv")
    for target in (tmp_path / "folder", "memory://box/out"):
        write_manifest(given, target)
        back = read_manifest(target)
        assert back.label.tolist() == given.label.tolist()
        assert open_source(back).load(3)[1] == open_source(given).load(3)[1]
    with pytest.raises(Exception, match="not an empty folder"):
        write_manifest(given, "memory://box/out")


def test_what_a_local_table_says_of_a_store_needs_a_person(store, tmp_path):
    given = read_manifest("memory://box/data/table.csv")
    for name in ("clean.csv", "clean.parquet"):
        write_manifest(given, tmp_path / name)
        with pytest.raises(DataError, match="--image-root memory://box/data"):
            read_manifest(tmp_path / name)
        back = read_manifest(tmp_path / name, image_root="memory://box/data")
        assert open_source(back).load(2)[1] == open_source(given).load(2)[1]


def test_a_store_that_cannot_be_reached_is_no_unreadable_picture(monkeypatch, store):
    def broken(self, *_, **__):
        raise TimeoutError("the line is dead")

    given = read_manifest("memory://box/data/table.csv")
    monkeypatch.setattr("labelclean.data.places._PAUSE", 0)
    monkeypatch.setattr(type(store), "cat_ranges", broken)
    with pytest.raises(StoreError, match="cannot be reached: the line is dead"):
        scan_images(open_source(given), workers=0)


def test_tar_shards_in_a_store_are_copied_once(store, tmp_path, monkeypatch):
    monkeypatch.setenv("LABELCLEAN_CACHE", str(tmp_path))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for number in range(4):
            for end, data in (("png", png(number)), ("cls", str(number % 2).encode())):
                info = tarfile.TarInfo(f"{number}.{end}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    store.pipe_file("memory://box/tars/s-0.tar", buffer.getvalue())
    found = read_manifest("memory://box/tars/s-{0..0}.tar")
    scan = scan_images(open_source(found), workers=0)
    assert scan.readable.all()
    assert len(list((tmp_path / "shards").glob("*.tar"))) == 1
