"""The evidence benchmark scores every source alone, left out, and all of them fused."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_digits

from labelclean.cli import cli

HELD_OUT = ("heads", "discriminant", "neighbours")


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    features, true = load_digits(n_class=4, return_X_y=True)
    noisy = true.copy()
    noisy[::8] = (true[::8] + 1) % 4
    path = tmp_path_factory.mktemp("evidence") / "d.npz"
    np.savez(path, X=features.astype(np.float32), y=noisy, true=true)
    return path, float((noisy != true).mean())


def run(path, *more):
    arguments = ["benchmark", "evidence", str(path), "--truth-col", "true", "--quiet", *more]
    done = CliRunner().invoke(cli, [*arguments, "--label-col", "y", "--set", "training.epochs=4"])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def scores(planted):
    return {one["method"]: one for one in json.loads(run(planted[0], "--json"))}


def test_all_sources_are_scored_together_alone_and_left_out(planted, scores):
    names = (*HELD_OUT, "network")
    wanted = ["labelclean", *(f"{n} alone" for n in names), *(f"without {n}" for n in HELD_OUT)]
    assert list(scores) == wanted
    whole = scores["labelclean"]
    assert whole["labels"] == "y"
    assert whole["true_noise"] == pytest.approx(planted[1])
    assert whole["ap"] > 0.9
    assert whole["f1"] <= whole["best_f1"]
    assert whole["noise_error"] == pytest.approx(abs(whole["estimate"] - planted[1]))
    assert 0 <= whole["calibration"] < 0.1
    for name in names:
        assert scores[f"{name} alone"]["ap"] > 0.5
        assert scores[f"{name} alone"]["weight"] >= 0
        assert scores[f"{name} alone"]["f1"] is None
    assert sum(scores[f"{name} alone"]["weight"] for name in HELD_OUT) > 0


@pytest.mark.parametrize("left_out", ["neighbours", "heads"])
def test_a_source_left_out_is_as_if_it_had_not_been_asked(planted, scores, left_out):
    others = [name for name in (*HELD_OUT, "network") if name != left_out]
    chosen = ["--set", f"evidence.sources={json.dumps(others)}", "--json"]
    restricted = {one["method"]: one for one in json.loads(run(planted[0], *chosen))}
    without, audit = scores[f"without {left_out}"], restricted["labelclean"]
    for number in ("ap", "f1", "best_f1", "estimate", "calibration"):
        assert without[number] == pytest.approx(audit[number], abs=1e-6), number
    assert restricted[f"{left_out} alone"]["weight"] == 0
    assert f"without {left_out}" not in restricted


def test_a_table_with_cleanlab_beside(planted):
    pytest.importorskip("cleanlab")
    lines = run(planted[0], "--against", "cleanlab").splitlines()
    assert lines[0].startswith("| labels | method | weight | ap | f1 | best_f1 | ")
    # The head on frozen features is scored, but does not join, so nothing is without it.
    assert len(lines) == 2 + 1 + 4 + 3 + 1
    assert lines[2].startswith("| y | labelclean | - | ")
    assert lines[-1].startswith("| y | cleanlab | - | ")


def test_rows_of_unknown_truth_do_not_count(planted, tmp_path):
    with np.load(planted[0]) as held:
        true = held["true"].astype(str)
        true[:100] = ""
        np.savez(tmp_path / "d.npz", X=held["X"], y=held["y"], true=true)
        wrong = (held["y"] != held["true"])[100:]
    for one in json.loads(run(tmp_path / "d.npz", "--json")):
        assert one["true_noise"] == pytest.approx(wrong.mean())


def test_a_rival_without_features_to_share_is_refused_before_anything_is_trained(planted):
    arguments = ["benchmark", "evidence", str(planted[0]), "--truth-col", "true", "--quiet"]
    more = ["--set", "training.mode=scratch", "--against", "cleanlab"]
    done = CliRunner().invoke(cli, [*arguments, *more])
    assert done.exit_code != 0
    assert "frozen features" in str(done.exception) + done.output


@pytest.mark.slow
def test_networks_that_left_rows_out_are_a_source_like_others(tmp_path):
    table = load_digits(n_class=3)
    true = table.target[:90]
    noisy = true.copy()
    noisy[::9] = (true[::9] + 1) % 3
    pictures = (table.images[:90] * 15.9).astype(np.uint8)
    np.savez(tmp_path / "d.npz", X=pictures, y=noisy, true=true)
    flags = {"mode": "finetune", "folds": 2, "frozen_stages": 3}
    more = [part for name, value in flags.items() for part in ("--set", f"training.{name}={value}")]
    text = run(tmp_path / "d.npz", *more, "--set", "model.image_size=32", "--json")
    found = {one["method"]: one for one in json.loads(text)}
    # Ninety tiny pictures and few steps teach little: what counts is that it is asked and weighed.
    assert 0 < found["cross_fitted alone"]["ap"] <= 1
    for name in (*HELD_OUT, "cross_fitted"):
        assert 0 <= found[f"without {name}"]["ap"] <= 1
    assert found["without cross_fitted"]["ap"] != found["labelclean"]["ap"] or (
        found["cross_fitted alone"]["weight"] == 0
    )
