"""A real S3-compatible server on this machine: the same answers as from files."""

import io
import tarfile

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from labelclean.cli import cli
from labelclean.data.places import StoreError
from labelclean.data.read import read_manifest
from labelclean.data.scan import scan_images
from labelclean.data.sources import open_source
from labelclean.data.write import write_manifest
from labelclean.errors import DataError, OutputError

pytest.importorskip("s3fs")
server = pytest.importorskip("moto.server")


def png(value):
    buffer = io.BytesIO()
    Image.fromarray(np.full((20, 30, 3), value, np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture(name="bucket", scope="module")
def _bucket():
    import s3fs

    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem.clear_instance_cache()
        store = s3fs.S3FileSystem()
        store.mkdir("box")
        yield store
        s3fs.S3FileSystem.clear_instance_cache()
    running.stop()


@pytest.fixture(name="local")
def _local(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELCLEAN_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "local"
    folder.mkdir()
    for shard in range(2):
        with tarfile.open(folder / f"s-{shard}.tar", "w") as archive:
            for row in range(3):
                number = 3 * shard + row
                for end, data in (("png", png(40 * number)), ("cls", b"%d" % (number % 2))):
                    info = tarfile.TarInfo(f"{number}.{end}")
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))
                (folder / f"{number}.png").write_bytes(png(40 * number))
    lines = "".join(f"{number}.png,{'ab'[number % 2]}\n" for number in range(7))
    (folder / "table.csv").write_text("image,label\n" + lines)
    (folder / "0.png").write_bytes(b"")
    return folder


@pytest.mark.parametrize("name", ["table.csv", "s-{0..1}.tar"])
def test_the_same_rows_from_a_store_as_from_files(bucket, local, name):
    bucket.put(str(local), f"box/{local.parent.name}/", recursive=True)
    url = f"s3://box/{local.parent.name}/local"
    near, far = read_manifest(local / name), read_manifest(f"{url}/{name}")
    assert near.digest == far.digest
    assert near.table == far.table
    expected = scan_images(open_source(near), workers=0)
    for workers in (0, 2):
        found = scan_images(open_source(far), workers=workers)
        assert found.reason.tolist() == expected.reason.tolist()
        assert np.array_equal(found.digest, expected.digest)
    assert open_source(far).load(1)[1] == open_source(near).load(1)[1]


def test_exports_go_to_a_store(bucket, local):
    given = read_manifest(local / "s-{0..1}.tar")
    write_manifest(given, "s3://box/out/folder")
    back = read_manifest("s3://box/out/folder")
    assert back.label.tolist() == given.label.tolist()
    assert open_source(back).load(4)[1] == open_source(given).load(4)[1]
    with pytest.raises(OutputError, match=r"s3://nothing-here/x\.csv cannot be written"):
        write_manifest(given, "s3://nothing-here/x.csv")


def test_what_is_not_there_is_said_with_exit_code_3(bucket):
    for name in ("nothing.csv", "nothing-{0..1}.tar", "nothing"):
        answer = CliRunner().invoke(cli, ["check", f"s3://box/{name}"])
        assert answer.exit_code == 3, answer.output
        assert "nothing" in answer.output


def test_without_credentials_or_server_the_message_says_so(bucket, monkeypatch, tmp_path):
    import s3fs

    monkeypatch.setattr("labelclean.data.places._PAUSE", 0)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(DataError, match="no credentials for s3:// were found"):
        read_manifest("s3://box/x.csv")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(StoreError, match="cannot be reached"):
        read_manifest("s3://box/x.csv")
