"""Files, embedded bytes and arrays give the same pixels through one door."""

import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from gallery import encode, scene
from labelclean.data.images import ImageError, ImageLimits
from labelclean.data.manifest import Manifest
from labelclean.data.sources import open_source
from labelclean.errors import DataError


def manifest(column=None, *, root=None, arrays=None, paths=None, allow_outside_root=False):
    rows = len(arrays) if arrays is not None else len(column)
    table = pa.table({} if column is None else {"image": column})
    return Manifest(
        label=np.zeros(rows, np.int64),
        classes=("a", "b"),
        sample_id=np.array([str(row) for row in range(rows)], object),
        path=np.array(paths or [f"row {row}" for row in range(rows)], object),
        split=None,
        verified=np.zeros(rows, bool),
        group=None,
        sample_weight=None,
        table=table,
        image_col=None if column is None else "image",
        label_col=None,
        image_root=root,
        allow_outside_root=allow_outside_root,
        arrays=arrays,
        digest="",
        source=Path("m.parquet"),
    )


def of_files(root, paths, **more):
    return manifest(pa.array(paths), root=root, paths=paths, **more)


PICTURE = encode(Image.fromarray(scene()), "PNG")


def embedded(kind):
    if kind == "struct":
        rows = [{"bytes": PICTURE, "path": "x.png"}, {"bytes": None, "path": None}]
        return pa.array(rows, pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    if kind == "null struct":
        rows = [{"bytes": PICTURE}, None]
        return pa.array(rows, pa.struct([("bytes", pa.large_binary())]))
    types = {"binary": pa.binary(), "large": pa.large_binary(), "view": pa.binary_view()}
    return pa.array([PICTURE, None], types[kind])


@pytest.mark.parametrize("kind", ["struct", "null struct", "binary", "large", "view"])
def test_embedded_bytes(kind, tmp_path):
    source = open_source(manifest(embedded(kind), root=tmp_path))
    assert len(source) == 2
    pixels, digest = source.load(0)
    np.testing.assert_array_equal(pixels, scene())
    assert digest == hashlib.sha256(PICTURE).digest()
    with pytest.raises(ImageError, match=r"no (path|image) in this row"):
        source.load(1)


def test_embedded_rows_without_bytes_fall_back_to_their_file(tmp_path):
    (tmp_path / "x.png").write_bytes(PICTURE)
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = [{"bytes": None, "path": "x.png"}, {"bytes": None, "path": "../x.png"}]
    source = open_source(manifest(pa.array(rows, kind), root=tmp_path))
    for part in (source, source.part(0, 2)):
        np.testing.assert_array_equal(part.load(0)[0], scene())
        with pytest.raises(ImageError, match="leaves the image root"):
            part.load(1)


def test_a_struct_without_bytes_is_refused():
    column = pa.array([{"url": "x"}])
    with pytest.raises(DataError, match="fields bytes and path"):
        open_source(manifest(column))


@pytest.mark.parametrize("shape", [(2, 4, 5), (2, 4, 5, 1), (2, 4, 5, 3)])
def test_arrays(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    source = open_source(manifest(arrays=pixels))
    expected = np.broadcast_to(pixels.reshape(2, 4, 5, -1), (2, 4, 5, 3))
    for row in range(2):
        loaded, digest = source.load(row)
        np.testing.assert_array_equal(loaded, expected[row])
        assert loaded.flags.writeable
        assert source.inspect(row)[:3] == (5, 4, digest)
    assert source.load(0)[1] != source.load(1)[1]


def test_arrays_with_alpha_are_laid_over_white():
    pixels = np.array([[[[0, 100, 200, 51]]]], np.uint8)
    loaded, _ = open_source(manifest(arrays=pixels)).load(0)
    assert loaded.tolist() == [[[204, 224, 244]]]


def test_array_digests_tell_shapes_apart_and_ignore_memory_layout():
    flat = np.arange(12, dtype=np.uint8)
    digests = {
        open_source(manifest(arrays=flat.reshape(1, *shape))).load(0)[1]
        for shape in ((3, 4), (4, 3), (2, 6), (4, 3, 1))
    }
    assert len(digests) == 4
    order = np.asfortranarray(flat.reshape(1, 3, 4))
    assert open_source(manifest(arrays=order)).load(0)[1] in digests


@pytest.mark.parametrize(
    "arrays",
    [
        np.zeros((2, 8)),
        np.zeros((2, 4, 4)),
        np.zeros((2, 4, 4, 2), np.uint8),
        np.zeros((2, 0, 4), np.uint8),
    ],
)
def test_arrays_that_are_no_pictures_are_refused(arrays):
    with pytest.raises(DataError, match="holds no pictures"):
        open_source(manifest(arrays=arrays))


def test_outside_files_are_read_on_demand_only(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "x.png").write_bytes(PICTURE)
    path = "../x.png"
    with pytest.raises(ImageError, match="leaves"):
        open_source(of_files(tmp_path / "root", [path])).load(0)
    allowed = open_source(of_files(tmp_path / "root", [path], allow_outside_root=True))
    np.testing.assert_array_equal(allowed.load(0)[0], scene())


def test_a_file_over_the_cap_is_refused_unread(tmp_path):
    with (tmp_path / "sparse.jpg").open("wb") as file:
        file.truncate(2**33)
    source = open_source(of_files(tmp_path, ["sparse.jpg"]), ImageLimits(max_bytes=1000))
    assert len(source.read(0)) == 1001
    with pytest.raises(ImageError, match="1000 bytes"):
        source.load(0)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_an_image_error(tmp_path):
    (tmp_path / "x.png").write_bytes(PICTURE)
    (tmp_path / "x.png").chmod(0)
    with pytest.raises(ImageError, match="permission"):
        open_source(of_files(tmp_path, ["x.png"])).load(0)


def test_sources_survive_pickling_and_parts_carry_only_their_rows(tmp_path):
    (tmp_path / "x.png").write_bytes(PICTURE)
    noise = np.random.default_rng(0).bytes(100_000)
    kinds = [
        of_files(tmp_path, ["x.png", "n" * 100_000]),
        manifest(pa.array([PICTURE, noise])),
        manifest(pa.array([{"bytes": PICTURE}, {"bytes": noise}])),
        manifest(arrays=np.random.default_rng(0).integers(0, 256, (2, 300, 300), np.uint8)),
    ]
    for kind in kinds:
        source = open_source(kind)
        pixels, digest = source.load(0)
        copy = pickle.loads(pickle.dumps(source))  # noqa: S301
        np.testing.assert_array_equal(copy.load(0)[0], pixels)
        part = source.part(0, 1)
        assert len(part) == 1
        assert part.load(0)[1] == digest
        assert len(pickle.dumps(part)) < 95_000


def test_a_reading_process_imports_little():
    code = (
        "import sys, labelclean.data.sources, labelclean.data.images;"
        "print([m for m in ('torch','pandas','sklearn','pyarrow','click') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
