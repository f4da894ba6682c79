"""`labelclean strategies` and `--strategy`: what is listed, what trains, what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_digits

from labelclean.cli import cli
from labelclean.strategies import STRATEGIES


def run(*arguments: object):
    return CliRunner().invoke(cli, [str(each) for each in arguments])


@pytest.fixture(scope="module")
def features(tmp_path_factory) -> Path:
    table = load_digits(n_class=3)
    label = table.target.copy()
    label[:40] = (label[:40] + 1) % 3
    path = tmp_path_factory.mktemp("data") / "digits.npz"
    np.savez(path, X=table.data.astype(np.float32), y=label)
    return path


def test_the_catalogue_is_a_table_with_one_line_a_strategy():
    result = run("strategies")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0, result.output
    assert lines[0].split()[:3] == ["name", "parameters", "networks"]
    assert [line.split()[0] for line in lines[1:]] == list(STRATEGIES)
    facts = {row["name"]: row for row in json.loads(run("strategies", "--json").stdout)}
    assert facts["dividemix"]["networks"] == 2
    assert facts["plain"]["changes"] == ""


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_every_strategy_can_be_explained(name):
    result = run("strategies", name)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{name}: ")
    for word in STRATEGIES.parameters(name):
        assert f"{word}: " in result.stdout, "the parameter is explained"


def test_a_parameter_can_be_set_and_is_checked():
    assert "share=0.6" in run("strategies", "self_paced", "--set", "share=0.6").stdout
    wrong = run("strategies", "self_paced", "--set", "share=2")
    assert wrong.exit_code == 2
    assert "share is 2" in wrong.stderr
    assert "Did you mean 'self_paced'" in run("strategies", "selfpaced").stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--strategy", "coteaching"], "Did you mean 'co_teaching'"),
        (["--strategy", "mixup", "--set", "strategy.beta=2"], "no parameter 'beta'"),
        (["--strategy", "co_teaching"], "model.hidden=128"),
        (["--strategy", "d2l"], "model.hidden=128"),
        (["--strategy", "mixup", "--loss", "elr"], "keeps a memory of its own (N x C)"),
        (["--strategy", "self_paced", "--loss", "dmi"], "one value for a whole batch"),
        (["--strategy", "mixup", "--set", "training.accumulate=2"], "training.accumulate=1"),
        (["--strategy", "bilevel", "--set", "training.batch_size=10"], "to 16 or more"),
        (["--strategy", "joint", "--set", "training.batch_size=2"], "to 6 or more"),
        (
            ["--strategy", "d2l", "--set", "model.hidden=8", "--set", "strategy.neighbours=128"],
            "128 at a time, are too few for 128 neighbours",
        ),
        (["--strategy", "co_teaching", "--pred-probs", "p.npy"], "leave out --strategy"),
        (
            ["--loss", "adaptation", "--set", "loss.mask=[[1, 0], [0, 1]]"],
            "mask is for 2 classes, but the data has 3",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_spent(features, tmp_path, flags, words):
    result = run("audit", features, "--out", tmp_path / "run", *flags)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert not (tmp_path / "run").exists()


def test_an_audit_trains_by_a_strategy(features, tmp_path):
    flags = ["--strategy", "mentornet_pd", "--set", "strategy.share=0.8", "--loss", "cce"]
    shared = ["--epochs", "6", "--quiet", "--json"]
    facts = {}
    for name, more in (("plain", ["--loss", "cce"]), ("chosen", flags)):
        result = run("audit", features, "--out", tmp_path / name, *more, *shared)
        assert result.exit_code == 0, result.output
        facts[name] = json.loads(result.stdout)
    assert facts["plain"]["recipe"]["strategy"] == {"name": "plain", "params": {}}
    chosen = {"name": "mentornet_pd", "params": {"share": 0.8}}
    assert facts["chosen"]["recipe"]["strategy"] == chosen
    assert facts["chosen"]["counts"]["audited"] == facts["plain"]["counts"]["audited"]
