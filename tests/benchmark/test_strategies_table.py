"""`benchmark strategies`: losses and strategies side by side, cell by cell, and what is refused."""

import json
from pathlib import Path

import pandas as pd
import pytest

from finished_runs import call, write_pictures
from labelclean.benchmark.metrics import average_precision
from labelclean.benchmark.side_by_side import all_methods
from labelclean.losses import LOSSES
from labelclean.strategies import STRATEGIES

NETWORK = (
    "--set", "model.backbone=resnet20", "--set", "model.pretrained=false", "--set",
    "model.image_size=16", "--set", "training.mode=head", "--set", "training.epochs=30", "--set",
    "training.learning_rate=0.01", "--workers", "0",
)  # fmt: skip
HIDDEN = ("--set", "model.hidden=16")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory) -> Path:
    path = write_pictures(tmp_path_factory.mktemp("digits"))
    frame = pd.read_csv(path)
    frame["half"] = frame["label"].where(frame.index >= 6, frame["true"])
    frame.to_csv(path, index=False)
    return path


def table(manifest, out, *flags, code=0):
    flags = ("--truth-col", "true", "--labels", "label", "--out", out, *NETWORK, *flags)
    return call("benchmark", "strategies", manifest, *flags, code=code)


def measured(out: Path, name: str) -> dict[str, float]:
    return json.loads((out / "cells" / f"{name}.json").read_text())["measures"]


def test_every_loss_and_strategy_has_a_line(manifest, tmp_path):
    short = ("--set", "training.epochs=2")
    shown = table(manifest, tmp_path / "out", *HIDDEN, *short, "--quiet").stdout.splitlines()
    methods = [line.split("|")[1].strip() for line in shown if line.startswith("| ")][1:]
    assert methods == all_methods()
    assert {each.partition("@")[0] for each in methods} == set(LOSSES)
    strategies = {each.partition("@")[2].partition(":")[0] or "plain" for each in methods}
    assert strategies == set(STRATEGIES)
    assert (tmp_path / "out" / "table.md").read_text().splitlines() == shown[: len(methods) + 2]


def test_a_cell_says_what_an_audit_says(manifest, tmp_path):
    flags = ("--methods", "gce:q=0.5@mixup:alpha=4", "--quiet", *HIDDEN)
    table(manifest, tmp_path / "out", *flags)
    found = measured(tmp_path / "out", "gce-q=0.5@mixup-alpha=4__label__0")
    same = ("--loss", "gce", "--set", "loss.q=0.5", "--strategy", "mixup", "--set",
            "strategy.alpha=4", "--quiet", *HIDDEN, *NETWORK)  # fmt: skip
    call("audit", manifest, "--label-col", "label", "--out", tmp_path / "run", *same)
    rows = pd.read_parquet(tmp_path / "run" / "issues.parquet").dropna(subset="p_given")
    true = pd.read_csv(manifest)["true"][rows["row"]].to_numpy()
    wrong = (rows["label_given"] != true).to_numpy()
    expected = average_precision(wrong, 1 - rows["p_given"].to_numpy())
    assert found["ap"] == pytest.approx(expected, abs=1e-9)
    call("predict", tmp_path / "run", manifest, "--out", tmp_path / "said.parquet", "--workers", 0)
    said, frame = pd.read_parquet(tmp_path / "said.parquet"), pd.read_csv(manifest)
    apart = (frame["split"] == "test").to_numpy()
    hits = said["label_predicted"][apart] == frame["true"][apart]
    assert found["accuracy"] == pytest.approx(hits.mean())


def test_it_goes_on_and_takes_several_columns(manifest, tmp_path):
    out, methods = tmp_path / "out", ("--methods", "cce,cce@co_teaching:forget=rate", *HIDDEN)
    table(manifest, out, *methods)
    before = {path.name: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    again = table(manifest, out, "--labels", "half", *methods)
    assert (
        before.items() < {p.name: p.stat().st_mtime_ns for p in (out / "cells").iterdir()}.items()
    )
    assert "| method | label: accuracy | label: AP | half: accuracy | half: AP |" in again.stdout
    assert "cce__label__0" not in again.stderr
    other = table(manifest, out, *methods, "--set", "training.epochs=9", code=2)
    assert "other settings (recipe.training.epochs was 30" in other.stderr


def test_what_a_linear_head_cannot_do_is_left_out_or_refused(manifest, tmp_path):
    linear = ("--set", "training.epochs=1", "--set", "model.hidden=0")
    shown = table(manifest, tmp_path / "out", *linear)
    assert "cce@co_teaching:forget=rate is left out: strategy 'co_teaching' cannot" in shown.stderr
    assert "| cce@dividemix |" not in shown.stdout
    assert "| cce@self_paced |" in shown.stdout
    methods = ("--methods", "cce,cce@dividemix,nal@mixup", *linear)
    refused = table(manifest, tmp_path / "other", *methods, code=2).stderr
    assert "model.hidden=128" in refused
    assert "keeps a memory of its own" in refused
    assert not (tmp_path / "other").exists()


def test_names_are_checked(manifest, tmp_path):
    for methods, words in (
        ("cce@coteaching", "Did you mean 'co_teaching'"),
        ("cc", "Did you mean 'cce'"),
        ("cce@mixup:beta=2", "no parameter 'beta'"),
        ("cce,cce", "named twice"),
    ):
        refused = table(manifest, tmp_path / "out", "--methods", methods, *HIDDEN, code=2)
        assert words in refused.stderr
    wrong = call(
        "benchmark", "strategies", manifest, "--truth-col", "tru", "--labels", "label", "--out",
        tmp_path / "out", code=3,
    )  # fmt: skip
    assert "has no column 'tru'" in wrong.stderr
