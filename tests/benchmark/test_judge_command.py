import json

import numpy as np
from click.testing import CliRunner
from simulated_arrays import simulated

from labelclean.benchmark import judge, judge_speed
from labelclean.cli.benchmark_judge import command


def test_the_command_prints_files_and_groups(tmp_path, monkeypatch):
    label, probs, true = simulated(600)
    np.savez(tmp_path / "made.npz", pred_probs=probs, labels=label, true_labels=true)
    monkeypatch.setattr(judge, "clean_cases", lambda *_: iter(()))
    monkeypatch.setattr(judge, "noisy_cases", lambda *_: iter(()))
    arguments = ["--pred-probs", str(tmp_path), "--alone", "--quiet"]
    text = CliRunner().invoke(command, arguments)
    assert text.exit_code == 0, text.output
    assert "| made | labelclean | " in text.output
    assert "| R sym-20 | 1 | " in text.output
    held = json.loads(CliRunner().invoke(command, [*arguments, "--json"]).stdout)
    assert held["labelclean"]["noisy_sets"] == 4
    assert held["labelclean"]["groups"]["R none"]["sets"] == 1
    assert 0 <= held["labelclean"]["noise_error"] < 0.1
    assert held["labelclean"]["declined"] == 0
    assert held["speed"] == []


def test_several_seeds_and_the_speed_in_one_run(tmp_path, monkeypatch):
    label, probs, true = simulated(600)
    np.savez(tmp_path / "made.npz", pred_probs=probs, labels=label, true_labels=true)
    monkeypatch.setattr(judge, "clean_cases", lambda *_: iter(()))
    monkeypatch.setattr(judge, "noisy_cases", lambda *_: iter(()))
    monkeypatch.setattr(judge_speed, "SIZES", ((2_000, 10),))
    arguments = ["--pred-probs", str(tmp_path), "--alone", "--quiet", "--seed", "0", "--seed", "1"]
    held = json.loads(CliRunner().invoke(command, [*arguments, "--speed", "--json"]).stdout)
    assert held["labelclean"]["noisy_sets"] == 8
    assert held["labelclean"]["groups"]["R sym-20"]["sets"] == 2
    assert held["labelclean"]["groups"]["R none"]["sets"] == 1, "clean sets know no seed"
    assert [row["rows"] for row in held["speed"]] == [2_000]
    assert held["speed"][0]["seconds"] > 0
    assert held["speed"][0]["times"] is None
    text = CliRunner().invoke(command, [*arguments, "--speed"]).output
    assert "| 2,000 x 10 | " in text


def test_a_folder_that_is_not_there_is_wrong_usage(tmp_path):
    assert CliRunner().invoke(command, ["--pred-probs", str(tmp_path / "no")]).exit_code == 2
