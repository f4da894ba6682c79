"""The engine's own measurements: their arithmetic, and that the command runs."""

import json
import time

import numpy as np
import pytest
from click.testing import CliRunner

from labelclean.benchmark import engine
from labelclean.benchmark.extraction import ExtractionCase
from labelclean.cli import cli
from labelclean.losses import LOSSES


def test_promises():
    assert engine.limited_to("a", 1.3, 1.3).kept
    assert not engine.limited_to("a", 1.31, 1.3).kept
    assert engine.at_least("a", 0.999, 0.999).kept
    assert not engine.at_least("a", 0.99, 0.999).kept


def test_ratios_are_taken_within_rounds(monkeypatch):
    seconds = {"bare": [1.0, 10.0, 2.0], "ours": [1.1, 13.0, 2.4], "plain": [3.3, 13.0, 4.8]}
    monkeypatch.setattr(engine, "time_extraction", lambda case, rounds, others: seconds)
    monkeypatch.setattr(engine, "other_engines", dict)
    findings, middle = engine.measure_engine_speed(ExtractionCase("x", None, "lite0", 96, None), 3)
    values = {finding.name: finding.value for finding in findings}
    assert values["ours / bare forward pass"] == pytest.approx(1.2)
    assert values["plain loop / ours"] == pytest.approx(2.0)
    assert middle == {"bare": 2.0, "ours": 2.4, "plain": 4.8}


def test_a_whole_audit_is_set_beside_the_bare_forward_pass(monkeypatch, tmp_path):
    case = ExtractionCase("x", None, "lite0", 32, 1)
    runs = engine.Runs(case, tmp_path)
    timings = {"read": 1.0, "features": 8.9, "total": 10.0}
    monkeypatch.setattr(runs, "audit", lambda name, *flags: {"timings": timings})
    seconds, ratio, explained = engine.measure_audit(runs, 4.0)
    assert (seconds.value, ratio.value, ratio.kept) == (10.0, 2.5, False)
    assert explained.value == pytest.approx(0.99)
    assert explained.kept


def test_the_limit_of_the_machine_is_a_large_matrix_product():
    pace, share = engine.measure_limit(ExtractionCase("x", None, "lite0", 32, 1), 100, 2.0)
    assert share.value > 0
    assert pace.value > 1e8  # 32 pixels of lite0 are millions of multiply-adds


def test_a_head_is_timed_while_it_trains(monkeypatch):
    slept = []
    kind = LOSSES["imae"]
    compute = kind.compute

    def slow(self, *arguments):
        time.sleep(0.01)
        slept.append(len(arguments[0]))
        return compute(self, *arguments)

    monkeypatch.setattr(kind, "compute", slow)
    began = time.perf_counter()
    findings = engine.measure_head(64, extraction=1.0, threads=1)
    passed = time.perf_counter() - began
    assert sum(slept) == 20 * 64  # every row in every one of 20 epochs
    assert 0.01 * len(slept) <= findings[0].value <= passed


@pytest.mark.parametrize(("extraction", "kept"), [(1e-6, False), (1e6, True)])
def test_a_head_may_take_a_quarter_of_the_extraction(extraction, kept):
    spent, ratio = engine.measure_head(64, extraction, threads=1)
    assert ratio.value == pytest.approx(spent.value / extraction)
    assert ratio.kept == kept
    assert ratio.limit == "<= 0.25"


@pytest.mark.slow
def test_the_command_measures_everything(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (41, 16, 16, 3), dtype=np.uint8)
    np.savez(tmp_path / "x.npz", X=pixels, y=np.arange(41) % 3)
    arguments = ["benchmark", "engine", str(tmp_path / "x.npz"), "--size", "32"]
    flags = ["--rounds", "1", "--kills", "1", "--threads", "1", "--json"]
    result = CliRunner().invoke(cli, [*arguments, *flags])
    assert result.exit_code == 0, result.output
    found = {line["name"]: line for line in json.loads(result.output)}
    assert found["two processes, largest difference of p"]["kept"]
    assert found["two processes, samples not recorded"]["value"] == 0
    assert found["of these and the others, resumed to the same bytes"]["kept"]
