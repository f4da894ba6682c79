"""The audit benchmark scores every column of labels against the truth."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_digits

from labelclean.cli import cli


def test_columns_are_scored_against_the_truth(tmp_path):
    features, true = load_digits(n_class=3, return_X_y=True)
    noisy = true.copy()
    noisy[::10] = (true[::10] + 1) % 3
    np.savez(tmp_path / "d.npz", X=features.astype(np.float32), y=true, noisy=noisy)
    arguments = ["benchmark", "audit", str(tmp_path / "d.npz"), "--truth-col", "y", "--quiet"]
    done = CliRunner().invoke(cli, [*arguments, "--labels", "noisy", "--labels", "y", "--json"])
    assert done.exit_code == 0, done.output
    noise, clean = json.loads(done.stdout)
    assert noise["true_noise"] == pytest.approx((noisy != true).mean())
    assert noise["ap"] > 0.9
    assert noise["estimate"] == pytest.approx(noise["true_noise"], abs=0.04)
    assert noise["accuracy_flagged"] > noise["accuracy_before"]
    assert clean["true_noise"] == 0
    assert clean["estimate"] < 0.03
