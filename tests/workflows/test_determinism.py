"""The same bytes, however the work was divided, cached or interrupted."""

from pathlib import Path

import pytest

from finished_runs import small, write_pictures
from planted import command, plant

TABLES = ("issues.parquet", "corrected.parquet", "records.parquet")
pytestmark = pytest.mark.usefixtures("plain_figures")


def tables(out: Path, *arguments: object) -> list[bytes]:
    done = command("audit", *arguments, "--out", out)
    assert done.exit_code == 0, done.output
    return [(out / name).read_bytes() for name in TABLES]


def test_pictures(tmp_path):
    table = write_pictures(tmp_path / "data")
    flags = small(tmp_path / "cache")[:-4]  # without --cache-dir and --workers
    cache = tmp_path / "cache"
    ways = {
        "cold": ("--cache-dir", cache, "--workers", 1, "--threads", 1),
        "warm": ("--cache-dir", cache, "--workers", 1, "--threads", 1),
        "none": ("--no-cache", "--workers", 1, "--threads", 2),
        "helpers": ("--no-cache", "--workers", 2, "--threads", 1),
    }
    found = {name: tables(tmp_path / name, table, *flags, *way) for name, way in ways.items()}
    (tmp_path / "empty").mkdir()
    warm = ways["warm"]
    for name in ("missing", "empty"):
        # There is nothing to go on with, so the run begins.
        found[name] = tables(tmp_path / name, table, *flags, *warm, "--resume")
    for name, content in found.items():
        assert content == found["cold"], name


@pytest.mark.parametrize("kind", ["--features", "--pred-probs"])
def test_brought_numbers(tmp_path, kind):
    data = plant(tmp_path / "data", rows=200, planted=20)
    brought = data.features if kind == "--features" else data.probs
    flags = (data.table, kind, brought, "--epochs", 2)
    first = tables(tmp_path / "one", *flags, "--threads", 1)
    assert tables(tmp_path / "two", *flags, "--threads", 2) == first


def test_resume_never_touches_a_folder_of_somebody_else(tmp_path):
    data = plant(tmp_path / "data", rows=60, planted=6)
    (tmp_path / "mine/model").mkdir(parents=True)
    (tmp_path / "mine/model/weights").write_text("dear")
    (tmp_path / "mine/report.html").write_text("mine")
    flags = ("--pred-probs", data.probs, "--out", tmp_path / "mine", "--resume")
    done = command("audit", data.table, *flags)
    assert done.exit_code == 2
    assert "not a run of labelclean" in done.output
    assert (tmp_path / "mine/model/weights").read_text() == "dear"
    assert (tmp_path / "mine/report.html").read_text() == "mine"
