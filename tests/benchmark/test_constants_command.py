import math
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner
from simulated_arrays import simulated

from labelclean.benchmark import constants
from labelclean.benchmark.zoo import ZooSet
from labelclean.calibration.constants import about_constants
from labelclean.cli.benchmark import TARGETS
from labelclean.cli.benchmark_constants import command


def tiny_beds(seed=0, files=None):
    label, probs, true = simulated(300, seed=seed)
    case = ZooSet("made", "sym-15", "made", label, true, probs)
    rows = np.eye(4)[true] + np.random.default_rng(0).normal(0, 0.4, (len(true), 4))
    return {
        "probs": [partial(constants._plain, one) for one in (case, *(files or {}).values())],
        "answers": [partial(constants._answered, case)],
        "blend": [partial(constants._blended, case, rows)],
    }


def named(name):
    return next(one for one in about_constants() if one.name == name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("doubt", (0.005, 0.02)),
        ("folds", (2, 10)),
        ("head_trusted", (0.4, 0.99)),
        ("blend_shares", ((0.0, 0.125, 0.25), (0.0, 0.5, 1.0))),
    ],
)
def test_half_and_double(name, expected):
    assert constants.half_and_double(named(name)) == expected


def test_the_command_writes_the_table(tmp_path, monkeypatch):
    label, probs, true = simulated(300, seed=1)
    np.savez(tmp_path / "made.npz", pred_probs=probs, labels=label, true_labels=true)
    monkeypatch.setattr(constants, "make_beds", tiny_beds)
    out = tmp_path / "table.md"
    done = CliRunner().invoke(
        command, ["--pred-probs", str(tmp_path), "--seed", "1", "--out", str(out), "--quiet"]
    )
    assert done.exit_code == 0, done.output
    text = out.read_text(encoding="utf-8")
    assert "| probs | out-of-fold probabilities | 2 | " in text
    rows = {line.split(" | ")[0][2:]: line for line in text.splitlines() if line.startswith("| ")}
    assert {one.name for one in about_constants()} <= set(rows)
    assert rows["weak_model"].endswith("| words | neither | neither |")
    assert "| 20: " in rows["prior_rows"]
    assert "0, 0" not in rows["prior_rows"]


def test_a_constant_does_what_its_row_says():
    found = {one.constant.name: one for one in constants.measure_constants(tiny_beds()).rows}
    prior = found["honest_rows"]
    assert prior.half.value == 0.5
    assert prior.double.value == 2.0
    assert prior.half.rate_error * prior.double.rate_error < 0, "two directions"
    assert found["softness"].half.ap == pytest.approx(0, abs=1e-3)
    assert found["head_q"].half is None, "there is no bed of features here"
    assert math.isfinite(found["blend_shares"].double.ap)


def test_it_is_listed():
    assert "constants" in TARGETS


@pytest.mark.slow
def test_the_whole_bed():
    beds = constants.make_beds()
    assert {name: len(trials) for name, trials in beds.items()} == {
        "probs": 8, "answers": 8, "blend": 3, "features": 3, "table": 3,
    }  # fmt: skip
    for trials in beds.values():
        assert trials[-1]().ap > 0.7
