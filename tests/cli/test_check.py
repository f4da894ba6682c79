"""`labelclean check`: the summary says what is there, the exit code whether it can be used."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from PIL import Image

from gallery import build, encode
from labelclean.cli import cli


def check(*arguments):
    result = CliRunner().invoke(cli, ["check", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def facts(*arguments, code=0):
    result = check(*arguments, "--json")
    assert result.exit_code == code, result.stderr
    return json.loads(result.stdout)


def write_table(path, rows, header=("image", "label")):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture
def table(tmp_path, pictures):
    """Eight pictures of two classes; row 6 repeats row 0 under the other label, row 7 row 2."""
    names = pictures(6)
    (tmp_path / "images" / "6.png").write_bytes((tmp_path / "images" / "0.png").read_bytes())
    (tmp_path / "images" / "7.png").write_bytes((tmp_path / "images" / "2.png").read_bytes())
    names += ["images/6.png", "images/7.png"]
    labels = ["cat", "dog", "cat", "dog", "cat", "cat", "dog", "cat"]
    splits = ["train"] * 6 + ["test"] * 2
    rows = list(zip(names, labels, splits, strict=True))
    return write_table(tmp_path / "table.csv", rows, ("image", "label", "split"))


def test_a_good_table(table):
    result = check(table)
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines() if line[0] != " ")
    assert lines["rows"] == "8"
    assert lines["classes"] == "2: cat 5, dog 3"
    assert lines["splits"] == "train 6, test 2"
    assert lines["unreadable"] == "0"
    assert lines["duplicates"].startswith("4 rows in 2 groups")
    assert lines["conflicts"].startswith("2 rows in 1 groups")
    assert len(lines["digest"]) == 64
    assert lines["usable"] == "yes"


def test_json_says_the_same(table):
    found = facts(table)
    assert found["rows"] == found["readable"] == 8
    assert found["classes"] == [{"label": "cat", "rows": 5}, {"label": "dog", "rows": 3}]
    assert found["splits"] == {"train": 6, "test": 2}
    assert found["unreadable"] == []
    assert found["duplicates"] == [[0, 6], [2, 7]]
    assert found["conflicts"] == [[0, 6]]
    assert found["usable"] is True
    assert found["problems"] == []
    assert found["manifest"] == str(table)


def test_unreadable_rows_are_listed_and_not_fatal(tmp_path, pictures):
    names = pictures(4)
    for number in range(12):
        (tmp_path / "images" / f"bad-{number}.png").write_bytes(b"no picture")
        names.append(f"images/bad-{number}.png")
    labels = ["cat", "dog"] * 8
    table = write_table(tmp_path / "table.csv", zip(names, labels, strict=True))
    result = check(table)
    assert result.exit_code == 0
    assert "readable    4\nunreadable  12\n" in result.stdout
    assert "  row 4  images/bad-0.png: not recognised as JPEG" in result.stdout
    assert "  row 13  " in result.stdout
    assert "  row 14  " not in result.stdout
    assert "and 2 more; --json lists all" in result.stdout
    found = facts(table)["unreadable"]
    assert [entry["row"] for entry in found] == list(range(4, 16))
    assert found[0]["sample_id"] == "4"
    assert found[0]["path"] == "images/bad-0.png"


def test_the_gallery_survives(tmp_path):
    cases = [case for case in build(tmp_path) if case.path.isprintable() and case.path]
    inside = [c for c in cases if "leaves the image root" not in c.words or "link" in c.words]
    paths = [c.path for c in inside]
    rows = zip(paths, ["cat", "dog"] * (len(paths) // 2) + ["cat"] * (len(paths) % 2), strict=True)
    table = write_table(tmp_path / "images" / "table.csv", rows)
    bad = {c.path for c in inside if c.pixels is None}
    assert {entry["path"] for entry in facts(table)["unreadable"]} == bad


def test_nothing_readable_is_bad_data(tmp_path):
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"no picture")
    table = write_table(tmp_path / "table.csv", [("a.png", "cat"), ("b.png", "dog")])
    result = check(table)
    assert result.exit_code == 3
    assert "usable      no" in result.stdout
    assert "none of the 2 rows has a readable image" in result.stderr
    assert facts(table, code=3)["usable"] is False


def test_one_class_left_is_bad_data(tmp_path, pictures):
    names = pictures(3)
    (tmp_path / names[2]).write_bytes(b"")
    table = write_table(tmp_path / "table.csv", zip(names, ["cat", "cat", "dog"], strict=True))
    result = check(table)
    assert result.exit_code == 3
    assert "only one class, 'cat'" in result.stderr


def test_paths_outside_need_permission(tmp_path, pictures):
    names = pictures(2)
    (tmp_path / "below").mkdir()
    rows = [(f"../{names[0]}", "cat"), (f"../{names[1]}", "dog")]
    table = write_table(tmp_path / "below" / "table.csv", rows)
    result = check(table)
    assert result.exit_code == 3
    assert "--allow-outside-root" in result.stderr
    assert facts(table, "--allow-outside-root")["readable"] == 2
    assert facts(table, "--set", "data.allow_outside_root=true")["readable"] == 2


def test_flags_win_over_the_recipe(table, tmp_path):
    recipe = tmp_path / "mine.toml"
    recipe.write_text("[data]\nlimit = 4\nmax_pixels = 10\n")
    assert facts(table, "--recipe", recipe, code=3)["rows"] == 4
    found = facts(table, "--recipe", recipe, "--limit", 2, "--set", "data.max_pixels=64")
    assert found["rows"] == found["readable"] == 2


def test_wrong_usage_is_told(table):
    result = check(table, "--recipe", "quik")
    assert result.exit_code == 2
    assert "Did you mean 'quick'?" in result.stderr
    assert check(table, "--set", "data.limt=3").exit_code == 2
    assert check(table.with_name("nothing.csv")).exit_code == 3


def test_workers_do_not_change_what_is_said(table):
    assert check(table, "--workers", 2, "--json").stdout == check(table, "--json").stdout


def test_hostile_text_cannot_drive_the_terminal(tmp_path, pictures):
    names = pictures(2)
    (tmp_path / "bad\x1b[2J.png").write_bytes(b"")
    rows = [(names[0], "\x1b]0;owned\x07"), (names[1], "dog"), ("bad\x1b[2J.png", "dog")]
    result = check(write_table(tmp_path / "table.csv", rows))
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "\\x1b]0;owned\\x07 1" in result.stdout


def test_embedded_images(tmp_path):
    good = [encode(Image.new("RGB", (4, 4), (n, 0, 0)), "PNG") for n in range(3)]
    images = [{"bytes": data, "path": f"{n}.png"} for n, data in enumerate([*good, b"bad"])]
    pq.write_table(pa.table({"image": images, "label": [3, 4, 3, 4]}), tmp_path / "t.parquet")
    found = facts(tmp_path / "t.parquet")
    assert found["classes"] == [{"label": 3, "rows": 2}, {"label": 4, "rows": 2}]
    assert [(entry["row"], entry["path"]) for entry in found["unreadable"]] == [(3, "3.png")]


@pytest.mark.parametrize("kind", ["images", "features"])
def test_arrays(tmp_path, kind):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (6, 4, 4), np.uint8) if kind == "images" else rng.random((6, 5))
    X[5] = X[1]
    np.savez(tmp_path / "t.npz", X=X, y=np.array([0, 1] * 3))
    found = facts(tmp_path / "t.npz")
    assert found["readable"] == 6
    assert found["duplicates"] == [[1, 5]]
    assert found["conflicts"] == []
