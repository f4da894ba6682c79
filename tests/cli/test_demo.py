"""The demo data: real scans, a known share of wrong labels, and no harm to what is there."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image
from sklearn.datasets import load_digits

from labelclean.cli import cli
from labelclean.data import demo
from labelclean.data.read import read_manifest


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["demo", *map(str, arguments)])


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "digits"
    result = run(folder, "--data-only")
    assert result.exit_code == 0, result.output
    assert "1797" in result.stdout
    return folder


def columns(path: Path) -> tuple[list[str], np.ndarray]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return rows[0], np.array(rows[1:])


def test_every_scan_is_there_with_its_true_label(written: Path) -> None:
    header, truth = columns(written / "truth.csv")
    assert header == ["image", "true_label"]
    digits = load_digits()
    np.testing.assert_array_equal(truth[:, 1], digits.target.astype(str))
    for row in (0, 100, 1796):
        pixels = np.asarray(Image.open(written / truth[row, 0]))
        np.testing.assert_array_equal(pixels, np.rint(digits.images[row] * 255 / 16))
    assert len(list((written / "images").iterdir())) == 1797


def test_a_tenth_of_every_digit_is_wrong(written: Path) -> None:
    header, table = columns(written / "dataset.csv")
    assert header == ["image", "label"]
    _, truth = columns(written / "truth.csv")
    np.testing.assert_array_equal(table[:, 0], truth[:, 0])
    wrong = table[:, 1] != truth[:, 1]
    assert wrong.mean() == pytest.approx(0.1, abs=0.001)
    assert set(table[:, 1]) == set("0123456789")
    for digit in "0123456789":
        rows = truth[:, 1] == digit
        assert wrong[rows].sum() == round(0.1 * rows.sum())


def test_our_reader_reads_it(written: Path) -> None:
    manifest = read_manifest(written / "dataset.csv")
    assert len(manifest) == 1797
    assert manifest.classes == tuple(range(10))


def test_same_seed_same_bytes_other_seed_other_errors(written: Path, tmp_path: Path) -> None:
    assert run(tmp_path / "again", "--data-only").exit_code == 0
    assert contents(tmp_path / "again") == contents(written)
    assert run(tmp_path / "other", "--seed", 1, "--data-only").exit_code == 0
    other = contents(tmp_path / "other")
    changed = {name for name, content in contents(written).items() if other[name] != content}
    assert changed == {"dataset.csv"}


def test_a_full_folder_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious", encoding="utf-8")
    result = run(tmp_path, "--data-only")
    assert result.exit_code == 2
    assert "--overwrite" in result.stderr
    assert contents(tmp_path) == {"mine.txt": b"precious"}


def test_overwrite_replaces_the_demo_and_nothing_else(written: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious", encoding="utf-8")
    (tmp_path / "dataset.csv").write_text("old", encoding="utf-8")
    assert run(tmp_path, "--data-only", "--overwrite").exit_code == 0
    found = contents(tmp_path)
    assert found.pop("mine.txt") == b"precious"
    assert found == contents(written)


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = iter(range(5))

    def full_disk(path: Path, content: bytes) -> None:
        if next(writes, None) is None:
            raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(demo.Path, "write_bytes", full_disk)
    result = run(tmp_path / "new")
    assert result.exit_code == 1
    assert "No space left" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["--seed", "-1"], ["dataset.csv"]])
def test_bad_arguments_are_wrong_usage(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dataset.csv").write_text("x", encoding="utf-8")
    assert run(*arguments).exit_code == 2
    assert contents(tmp_path) == {"dataset.csv": b"x"}


def test_default_folder_and_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("--json", "--data-only")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert answer["dataset"] == "labelclean-demo/dataset.csv"
    assert Path(answer["truth"]).is_file()
    assert (answer["rows"], answer["planted_errors"]) == (1797, 179)


def test_it_ends_with_what_was_found(tmp_path: Path) -> None:
    """A tenth of the digits, so that it is over soon; the slow test below audits them all."""
    small = ("--limit", 80, "--threads", 1, "--workers", 1, "--no-cache")
    result = run(tmp_path / "d", *small)
    assert result.exit_code == 0, result.output
    assert "Against the truth (truth.csv, 80 rows)" in result.stdout
    assert "labelclean export" in result.stderr
    _, table = columns(tmp_path / "d" / "dataset.csv")
    _, truth = columns(tmp_path / "d" / "truth.csv")
    wrong = int((table[:80, 1] != truth[:80, 1]).sum())
    assert re.search(rf"wrong labels +{wrong}, of which \d+ are flagged", result.stdout)
    # The audit saw no truth.
    out = tmp_path / "d" / "dataset-audit"
    assert (out / "report.html").is_file()
    assert "truth" not in json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert run(tmp_path / "d", *small).exit_code == 2


@pytest.mark.slow
def test_the_planted_errors_are_found(tmp_path: Path) -> None:
    result = run(tmp_path / "d", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert Path(answer["run"]) == tmp_path / "d" / "dataset-audit"
    found = answer["found"]
    assert found["auroc"] >= 0.985
    assert found["ap"] >= 0.95
