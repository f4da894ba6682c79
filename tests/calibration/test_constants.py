"""The judge's constants: known in full, used, in one place, and the same unless a block varies."""

import ast
import threading
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest
from simulated_arrays import simulated

import labelclean
from labelclean.calibration.constants import (
    JudgeConstants,
    about_constants,
    judge_constants,
    varied_constants,
)
from labelclean.calibration.judgement import judge
from labelclean.cli.benchmark_constants import _BEDS as BEDS
from labelclean.evidence.noise_aware import NoiseAwareSettings

PACKAGE = Path(labelclean.__file__).parent
EMPTIED = {
    # File to the numbers that may stay: parts of a formula, tolerances and brackets.
    "calibration/answers.py": set(),
    "calibration/arrays.py": set(),
    "calibration/blend.py": set(),
    "calibration/checks.py": {0.5, 1e-2, 1e-3},  # a majority; what a sum of one may miss
    "calibration/fit.py": {1.01},  # a sharpening below which nothing is fitted again
    "calibration/fused.py": {90.0, 0.5},  # where a root is looked for; half a rank, half a pattern
    "calibration/judgement.py": set(),
    "calibration/layout.py": set(),
    "calibration/noise_model.py": {0.5},  # Jeffreys' prior
    "calibration/noise_parameters.py": {1e-3},  # a change of power that is none
    "calibration/posterior.py": set(),
    "calibration/sparse_layout.py": set(),
    "calibration/pattern.py": {0.02, 1e-4},  # the least diagonal of a matrix
    "calibration/pool.py": {0.25, 0.5, 0.75},  # steps towards even weights
    "calibration/transition.py": {1e9},  # so many rows that no prior matters
    "correction/judging.py": set(),
    "estimators/evidence.py": set(),
    "evidence/discriminant.py": {0.5},  # of a Gaussian
    "evidence/features.py": set(),
    "evidence/noise_aware.py": {0.5},  # of a cosine
}
SMALLEST = 1e-6  # below, a number only guards a division or a logarithm


@pytest.mark.parametrize("constant", about_constants(), ids=lambda constant: constant.name)
def test_everything_is_known_about_a_constant(constant):
    assert constant.value == getattr(judge_constants(), constant.name)
    assert len(constant.meaning) > 8
    assert constant.origin.source
    assert constant.origin.chosen_on
    assert constant.acts_on in {*BEDS, "interval", "relabels", "loss", "network", "words"}
    assert np.max(constant.value) <= constant.most


def test_every_constant_is_read_somewhere():
    read = {
        node.attr
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    assert {one.name for one in fields(JudgeConstants)} - read == set()


@pytest.mark.parametrize("name", EMPTIED)
def test_no_constant_is_left_where_it_is_used(name):
    tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    left = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, float)
    }
    assert {n for n in left if n > SMALLEST} - {0.0, 1.0} <= EMPTIED[name]


def test_a_block_varies_them_and_nothing_else_does():
    label, probs, _ = simulated(1500)
    before = judge(label, probs)
    with varied_constants(JudgeConstants(prior_rows=1000.0, head_q=0.6)):
        assert NoiseAwareSettings().q == 0.6
        assert judge(label, probs).noise_rate != before.noise_rate
        seen = []
        other = threading.Thread(target=lambda: seen.append(judge_constants()))
        other.start()
        other.join()
        assert seen == [JudgeConstants()], "other threads judge as ever"
    np.testing.assert_array_equal(judge(label, probs).log_odds, before.log_odds)
    assert judge_constants() == JudgeConstants()
    with pytest.raises(FrozenInstanceError):
        judge_constants().floor = 1.0


def test_the_usual_ones_come_back_after_a_fault():
    with pytest.raises(ZeroDivisionError), varied_constants(JudgeConstants(floor=1e-3)):
        _ = 1 / 0
    assert judge_constants() == JudgeConstants()
