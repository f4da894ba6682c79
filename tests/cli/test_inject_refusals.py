"""`labelclean inject`: open-set noise between manifests, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from labelclean.cli import cli
from labelclean.data.read import read_manifest
from labelclean.data.sources import open_source

N = 40


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["inject", *map(str, arguments)])


@pytest.fixture
def table(tmp_path: Path, pictures: Callable[[int], list[str]]) -> Path:
    rows = "".join(f"{name},{'ab'[i % 2]}\n" for i, name in enumerate(pictures(N)))
    path = tmp_path / "data.csv"
    path.write_text(f"image,label\n{rows}", encoding="utf-8")
    return path


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    folder = tmp_path / "foreign"
    (folder / "things").mkdir(parents=True)
    for i in range(30):
        Image.new("RGB", (5, 5), (i, 255, i)).save(folder / "things" / f"{i}.png")
    return folder


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_openset_replaces_pictures_and_marks_three_kinds(
    table: Path, foreign: Path, suffix: str
) -> None:
    out = table.with_name(f"noisy.{suffix}")
    result = run(
        table, "--noise", "openset", "--second", foreign, "--rate", 0.6,
        "--open-fraction", 0.5, "--out", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    said = json.loads(out.with_name(f"{out.name}.noise.json").read_text(encoding="utf-8"))
    noisy, clean = read_manifest(out), read_manifest(table)
    after, before = open_source(noisy), open_source(clean)
    foreign_rows = [i for i in range(N) if after.load(i)[1] != before.load(i)[1]]
    assert foreign_rows == said["mask_open"]
    assert len(foreign_rows) == 12
    assert all(after.load(row)[0][0, 0, 1] == 255 for row in foreign_rows)
    truth = noisy.table.column("true_label").to_pylist()
    assert [i for i in range(N) if not truth[i]] == foreign_rows
    changed = np.flatnonzero(noisy.label != clean.label).tolist()
    assert sorted({*changed, *foreign_rows}) == said["mask"]
    assert not {*changed} & {*foreign_rows}


def test_openset_from_a_folder_beside_needs_no_flag_in_parquet(
    table: Path, foreign: Path, tmp_path: Path
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "images").rename(inner / "images")
    table = table.rename(inner / "data.csv")
    out = inner / "noisy.parquet"
    result = run(table, "--noise", "openset", "--second", foreign, "--rate", 0.5, "--out", out)
    assert result.exit_code == 0, result.output
    after, before = open_source(read_manifest(out)), open_source(read_manifest(table))
    moved = [i for i in range(N) if after.load(i)[1] != before.load(i)[1]]
    assert len(moved) == N // 2
    assert {tuple(after.load(i)[0][0, 0].tolist()) for i in moved} <= {
        (i, 255, i) for i in range(30)
    }


def test_openset_of_bytes_and_of_arrays(tmp_path: Path) -> None:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    for name, start in (("one", 0), ("two", 100)):
        cells = [{"bytes": bytes([start + i]), "path": None} for i in range(N)]
        columns = {"image": pa.array(cells, kind), "label": [i % 2 for i in range(N)]}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        X = np.arange(start, start + N, dtype=np.uint8)[:, None, None] * np.ones(
            (1, 2, 2), np.uint8
        )
        np.savez(tmp_path / f"{name}.npz", X=X, y=np.arange(N) % 2)
    for suffix in ("parquet", "npz"):
        out = tmp_path / f"noisy.{suffix}"
        result = run(
            tmp_path / f"one.{suffix}", "--noise", "openset", "--rate", 0.5,
            "--second", tmp_path / f"two.{suffix}", "--out", out,
        )  # fmt: skip
        assert result.exit_code == 0, result.output
    opened = json.loads((tmp_path / "noisy.npz.noise.json").read_text(encoding="utf-8"))[
        "mask_open"
    ]
    first = [
        cell["bytes"][0] for cell in pq.read_table(tmp_path / "noisy.parquet")["image"].to_pylist()
    ]
    assert [i for i in range(N) if first[i] >= 100] == opened
    with np.load(tmp_path / "noisy.npz") as arrays:
        np.testing.assert_array_equal(np.flatnonzero(arrays["X"][:, 0, 0] >= 100), opened)
        np.testing.assert_array_equal(np.flatnonzero(arrays["true_label"] == -1), opened)
    mixed = run(
        tmp_path / "one.parquet", "--noise", "openset", "--rate", 0.5,
        "--second", tmp_path / "two.npz", "--out", tmp_path / "mixed.parquet",
    )  # fmt: skip
    assert mixed.exit_code == 3
    assert "same form" in mixed.stderr


USAGE = {
    "rate missing": (["--noise", "symmetric"], "--rate is missing"),
    "rate above 1": (["--noise", "symmetric", "--rate", "20"], "20 % is 0.2"),
    "rate below 0": (["--noise", "symmetric", "--rate", "-0.1"], "between 0 and 1"),
    "rate not a number": (["--noise", "symmetric", "--rate", "nan"], "between 0 and 1"),
    "unknown noise": (["--noise", "salt", "--rate", "0.1"], "salt"),
    "unknown variant": (["--noise", "symmetric", "--rate", "0.1", "--variant", "x"], "other, any"),
    "foreign flag": (["--noise", "pairflip", "--rate", "0.1", "--variant", "any"], "belongs to"),
    "no map": (["--noise", "asymmetric", "--rate", "0.1"], "--map"),
    "no such map": (["--noise", "asymmetric", "--rate", "0.1", "--map", "no.csv"], "no.csv"),
    "no second": (["--noise", "openset", "--rate", "0.1"], "--second is missing"),
    "no matrix": (["--noise", "matrix"], "--map is missing"),
    "no probabilities": (
        ["--noise", "instance", "--rate", "0.1", "--variant", "pmd1"],
        "needs probs",
    ),
    "seed below 0": (["--noise", "symmetric", "--rate", "0.1", "--seed", "-1"], "0 or more"),
}


@pytest.mark.parametrize("case", USAGE)
def test_wrong_usage_is_exit_2_and_writes_nothing(
    table: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(table.parent)
    before = sorted(table.parent.rglob("*"))
    arguments, message = USAGE[case]
    result = run(table, *arguments, "--out", "noisy.csv")
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(table.parent.rglob("*")) == before


FILES = {
    "unknown class": ("asymmetric", "m.json", '{"a": "bb", "z": "a"}', "'bb'"),
    "broken json": ("asymmetric", "m.json", "{", "not valid JSON"),
    "list": ("asymmetric", "m.json", "[1, 2]", "names to names"),
    "empty": ("asymmetric", "m.csv", "from,to\n", "no pair"),
    "three cells": ("asymmetric", "m.csv", "a,b,a\n", "line 1 has 3 cells"),
    "class twice": ("asymmetric", "m.json", '{"a": "b", "a": "a"}', "several counterparts"),
    "bad rows": ("matrix", "m.csv", "0.5,0.4\n0,1\n", "not row-stochastic"),
    "wrong shape": ("matrix", "m.csv", "1,0,0\n0,1,0\n", "shape (2, 3)"),
    "ragged": ("matrix", "m.csv", "1,0\n1\n", "no matrix"),
    "words": ("matrix", "m.csv", "x,y\nz,w\n", "matrix of numbers"),
    "unknown name": ("matrix", "m.csv", ",a,c\na,1,0\nb,0,1\n", "unknown: 'c'"),
    "name twice": ("matrix", "m.csv", ",a,a\na,1,0\nb,0,1\n", "missing: 'b'"),
    "text as npy": ("matrix", "m.npy", "1,0", "cannot be read as an array"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_map_is_named(table: Path, case: str) -> None:
    noise, name, text, message = FILES[case]
    chart = table.with_name(name)
    chart.write_text(text, encoding="utf-8")
    out = table.with_name("noisy.csv")
    result = run(table, "--noise", noise, "--rate", 0.2, "--map", chart, "--out", out)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert name in result.stderr or message in {"'bb'", "not row-stochastic", "shape (2, 3)"}
    assert not out.exists()


def test_pickled_probabilities_are_never_opened(table: Path) -> None:
    np.save(table.with_name("p.npy"), np.array([{}], dtype=object), allow_pickle=True)
    result = run(
        table, "--noise", "instance", "--variant", "pmd1", "--rate", 0.2,
        "--probs", table.with_name("p.npy"), "--out", table.with_name("noisy.csv"),
    )  # fmt: skip
    assert result.exit_code == 3
    assert "numpy.save" in result.stderr


def test_a_second_planting_is_refused(table: Path) -> None:
    out, again = table.with_name("noisy.csv"), table.with_name("again.csv")
    assert run(table, "--noise", "symmetric", "--rate", 0.2, "--out", out).exit_code == 0
    result = run(out, "--noise", "symmetric", "--rate", 0.2, "--out", again)
    assert result.exit_code == 3
    assert "Rename or remove" in result.stderr
    assert not again.exists()


def test_the_input_is_never_overwritten(table: Path) -> None:
    before = table.read_bytes()
    result = run(table, "--noise", "symmetric", "--rate", 0.2, "--out", table)
    assert result.exit_code == 2
    assert table.read_bytes() == before


def test_one_class_and_no_rows_left_are_bad_data(table: Path) -> None:
    out = table.with_name("noisy.csv")
    text = table.read_text(encoding="utf-8")
    table.write_text(text.replace(",b\n", ",a\n"), encoding="utf-8")
    assert run(table, "--noise", "symmetric", "--rate", 0.2, "--out", out).exit_code == 3
    held = text.replace("label\n", "label,split\n").replace(",a\n", ",a,val\n")
    table.write_text(held.replace(",b\n", ",b,test\n"), encoding="utf-8")
    result = run(table, "--noise", "symmetric", "--rate", 0.2, "--out", out)
    assert result.exit_code == 3
    assert "no row is left" in result.stderr
    assert not out.exists()
