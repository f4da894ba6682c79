import json

import numpy as np
from click.testing import CliRunner
from simulated_arrays import simulated

from labelclean.benchmark import judge
from labelclean.cli.benchmark_judge import command


def test_the_command_prints_files_and_groups(tmp_path, monkeypatch):
    label, probs, true = simulated(600)
    np.savez(tmp_path / "made.npz", pred_probs=probs, labels=label, true_labels=true)
    monkeypatch.setattr(judge, "clean_cases", lambda seed: iter(()))
    monkeypatch.setattr(judge, "noisy_cases", lambda seed: iter(()))
    arguments = ["--pred-probs", str(tmp_path), "--alone", "--quiet"]
    text = CliRunner().invoke(command, arguments)
    assert text.exit_code == 0, text.output
    assert "| made | labelclean | " in text.output
    assert "| R sym-20 | 1 | " in text.output
    held = json.loads(CliRunner().invoke(command, [*arguments, "--json"]).stdout)
    assert held["labelclean"]["noisy_sets"] == 4
    assert 0 <= held["labelclean"]["noise_error"] < 0.1


def test_a_folder_that_is_not_there_is_wrong_usage(tmp_path):
    assert CliRunner().invoke(command, ["--pred-probs", str(tmp_path / "no")]).exit_code == 2
