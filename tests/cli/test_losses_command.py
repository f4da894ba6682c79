"""`labelclean losses` and `labelclean benchmark losses`."""

import json

import pytest
from click.testing import CliRunner

from labelclean.cli import cli
from labelclean.losses import LOSSES


def run(*arguments: str):
    return CliRunner().invoke(cli, list(arguments))


def test_the_catalogue_is_a_table_with_one_line_a_loss():
    result = run("losses")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0].split() == [
        "name", "parameters", "focus", "symmetric", "bounded", "memory", "paper",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[1:]] == list(LOSSES)
    gr = next(line for line in lines if line.startswith("gr "))
    assert "beta=8, lam=0.5, g=exp, normalize=weights" in gr
    assert "0.3333" in gr


def test_the_catalogue_as_json():
    table = json.loads(run("losses", "--json").stdout)
    facts = {row["name"]: row for row in table}
    assert facts["mae"]["symmetric"] is True
    assert facts["nal"]["memory"] == "N x C"
    assert facts["mse"]["focus"] is None
    assert facts["dmi"]["warmup_loss"] == "cce"


def test_one_loss_is_explained_and_drawn(tmp_path):
    plot = tmp_path / "gr.png"
    result = run("losses", "gr", "--set", "beta=12", "--set", "lam=2", "--plot", str(plot))
    assert result.exit_code == 0, result.output
    assert "beta=12, lam=2" in result.stdout
    assert "w = exp(beta p^lam (1 - p))" in result.stdout
    assert "focus       0.6667" in result.stdout
    assert "spread      2.978" in result.stdout
    assert "CIFAR-10, 40 % noise" in result.stdout
    assert plot.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("name", list(LOSSES))
def test_every_loss_can_be_explained(name):
    result = run("losses", name)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{name}: ")


def test_matrices_and_texts_can_be_set():
    result = run("losses", "forward", "--set", "T=[[0.9, 0.1], [0.2, 0.8]]")
    assert result.exit_code == 0, result.output
    assert "bounded     yes" in result.stdout
    assert "warm-up" not in result.stdout
    result = run("losses", "forward", "--set", "T=anchor")
    assert "warm-up     cce, 50% of the epochs" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gcee"], "Did you mean 'gce'?"),
        (["gce", "--set", "q=2"], "q is 2, outside its range; allowed: 0 < q <= 1"),
        (["gce", "--set", "p=2"], "has no parameter 'p'"),
        (["gce", "--set", "q"], "is not of the form parameter=value"),
        (["--set", "q=1"], "need the name of a loss"),
        (["mse", "--plot", "mse.png"], "'mse' has no weight curve"),
        (["gce", "--plot", "gce.docx"], "must end in .png, .svg or .pdf"),
    ],
)
def test_wrong_usage_is_exit_code_two(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("losses", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_benchmark_times_every_per_sample_loss():
    arguments = ("benchmark", "losses", "--batch", "8", "--classes", "4", "--rounds", "1")
    rows = json.loads(run(*arguments, "--json").stdout)
    names = [row["name"] for row in rows]
    assert names == ["torch cross_entropy", *(name for name in LOSSES if name != "dmi")]
    assert rows[0]["ratio"] == 1
    assert all(row["milliseconds"] > 0 for row in rows)
    assert {row["name"] for row in rows if row["limit"] == 2} == {"gce", "mae", "sce", "imae", "gr"}
    table = run(*arguments).stdout.splitlines()
    assert table[0].startswith("forward + backward, (8, 4) float32, 1 rounds")
    assert len(table) == 2 + len(rows)


def test_an_unknown_benchmark_is_refused():
    result = run("benchmark", "loses")
    assert result.exit_code == 2
    assert "Did you mean 'losses'?" in result.stderr
