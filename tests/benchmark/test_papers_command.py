"""`benchmark papers` on a few real digits: cells, resuming, retraining, rivals, figures."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from PIL import Image

from finished_runs import call, write_pictures
from labelclean.benchmark.noise import inject

TINY = (
    "--set", "model.backbone=resnet20", "--set", "model.image_size=8", "--set",
    "training.mode=scratch", "--set", "training.epochs=3", "--set", "training.batch_size=16",
    "--workers", "0", "--quiet",
)  # fmt: skip
VARYING = {"seconds", "cpu_seconds", "memory_bytes"}


@pytest.fixture(scope="module")
def manifest(tmp_path_factory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("papers"))


def papers(manifest, out, *flags, code=0):
    return call("benchmark", "papers", manifest, "--out", out, *flags, *TINY, code=code)


@pytest.fixture(scope="module")
def grid(manifest, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("grid") / "out"
    flags = ("--truth-col", "true", "--losses", "cce,nal:lam=0.5", "--noise", "symmetric:0.4")
    papers(manifest, out, *flags, "--seeds", "0,1")
    return out


def measures(path: Path) -> dict[str, float]:
    found = json.loads(path.read_text())["measures"]
    return {name: value for name, value in found.items() if name not in VARYING}


def test_every_cell_is_measured(grid):
    results = pq.read_table(grid / "results.parquet").to_pandas()
    assert len(results) == 4
    for column in (
        "best_accuracy", "final_accuracy", "noisy_subset", "clean_subset", "hybrid", "f1",
        "true_noise", "label_accuracy_corrected", "label_accuracy_argmax", "seconds",
        "memory_bytes", "ap_self_confidence", "auroc_aum", "auroc_margin",
    ):  # fmt: skip
        assert results[column].notna().all(), column
    nal = results[results.loss == "nal:lam=0.5"]
    assert nal["auroc_attention_late"].notna().all()
    assert nal["ap_target"].notna().all()
    assert results[results.loss == "cce"]["auroc_attention_late"].isna().all()
    assert [len(curve) for curve in results["curve_test_accuracy"]] == [3] * 4
    for curve, final in zip(results["curve_test_accuracy"], results["final_accuracy"], strict=True):
        assert curve[-1] == pytest.approx(final)
    assert (results["best_accuracy"] >= results["final_accuracy"]).all()


def test_noise_is_planted_in_the_truth_and_nowhere_else(grid, manifest):
    frame = pd.read_csv(manifest)
    samples = pq.read_table(grid / "cells" / "cce__symmetric-0.4__1.parquet").to_pandas()
    # Row 50 is damaged, the last 30 are the test split.
    assert samples["row"].tolist() == [row for row in range(90) if row != 50]
    names = np.array(sorted(frame["true"].unique()))
    assert names[samples["true"]].tolist() == frame["true"][samples["row"]].tolist()
    planted = inject("symmetric", samples["true"].to_numpy(), 3, 0.4, np.random.default_rng(1))
    assert samples["given"].tolist() == planted.label.tolist()
    found = measures(grid / "cells" / "cce__symmetric-0.4__1.json")
    assert found["true_noise"] == pytest.approx(planted.actual_rate, abs=1e-6)
    right = (samples["corrected"] == samples["true"]).mean()
    assert found["label_accuracy_argmax"] == pytest.approx(right)


def test_the_table_is_readable(grid):
    text = (grid / "table.md").read_text()
    assert "| symmetric:0.4 | cce | 2 |" in text
    assert "AUROC of every signal" in text


def test_finished_cells_are_not_done_again(grid, manifest):
    before = {path.name: path.stat().st_mtime_ns for path in (grid / "cells").iterdir()}
    flags = ("--truth-col", "true", "--losses", "cce", "--noise", "symmetric:0.4")
    papers(manifest, grid, *flags, "--seeds", "0,1")
    assert {path.name: path.stat().st_mtime_ns for path in (grid / "cells").iterdir()} == before
    done = papers(manifest, grid, *flags, "--set", "training.learning_rate=0.01", code=2)
    assert "other settings (recipe.training.learning_rate was" in done.stderr


def test_a_killed_grid_goes_on(grid, manifest, tmp_path):
    out = tmp_path / "out"
    flags = (
        "--truth-col", "true", "--losses", "cce,nal:lam=0.5", "--noise", "symmetric:0.4",
        "--seeds", "0,1",
    )  # fmt: skip
    command = [sys.executable, "-m", "labelclean", "benchmark", "papers", str(manifest)]
    process = subprocess.Popen(
        [*command, "--out", str(out), *flags, *TINY, "--threads", "1"], stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 120
    while not list(out.glob("cells/*.json")) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = {path.name: path.stat().st_mtime_ns for path in out.glob("cells/*.json")}
    assert finished
    papers(manifest, out, *flags)
    for name, when in finished.items():
        assert (out / "cells" / name).stat().st_mtime_ns == when
    for path in (grid / "cells").glob("*.json"):
        assert measures(out / "cells" / path.name) == pytest.approx(measures(path), nan_ok=True)


def test_cleanlab_judges_the_same_features(manifest, tmp_path):
    pytest.importorskip("cleanlab")
    flags = ("--truth-col", "true", "--losses", "cce", "--noise", "symmetric:0.4")
    papers(manifest, tmp_path / "out", *flags, "--against", "cleanlab")
    found = measures(tmp_path / "out" / "cells" / "cce__symmetric-0.4__0.json")
    assert 0.3 < found["against_cleanlab_ap"] <= 1
    assert 0 <= found["against_cleanlab_label_accuracy"] <= 1


def test_retraining_rivals_and_figures(manifest, tmp_path):
    out = tmp_path / "out"
    flags = ("--truth-col", "true", "--losses", "nal", "--noise", "symmetric:0.4")
    papers(manifest, out, *flags, "--against", "knn", "--against", "aum")
    path = out / "cells" / "nal__symmetric-0.4__0.json"
    first = measures(path)
    for name in ("knn", "aum"):
        assert 0 <= first[f"against_{name}_ap"] <= 1
        assert 0 <= first[f"against_{name}_f1"] <= 1
    assert "against_knn_label_accuracy" in first
    papers(manifest, out, *flags, "--retrain", "--figures")
    second = measures(path)
    assert 0 <= second["retrain_final_accuracy"] <= 1
    assert {name: second[name] for name in first} == first
    pictures = sorted(path.name for path in (out / "figures").iterdir())
    assert pictures == [
        "accuracy_symmetric-0.4.png",
        "attention_nal__symmetric-0.4__0.png",
        "confusion_nal__symmetric-0.4__0_corrected.png",
        "confusion_nal__symmetric-0.4__0_given.png",
        "weights_gr.png",
        "weights_imae.png",
    ]
    for name in pictures:
        pixels = np.asarray(Image.open(out / "figures" / name).convert("RGB"))
        colours = np.unique(pixels.reshape(-1, 3), axis=0)
        assert len(colours) > 20, name
        assert (pixels < 128).any(axis=2).mean() > 0.005, name


def test_a_strategy_stands_behind_a_loss(manifest, tmp_path):
    out = tmp_path / "out"
    flags = ("--truth-col", "true", "--noise", "symmetric:0.4")
    refused = papers(manifest, out, *flags, "--losses", "cce,cce@bilevel:chunks=20", code=2).stderr
    assert "strategy 'bilevel' cannot work here: batches of 16 rows are too small" in refused
    assert not out.exists()
    mask = ("--set", "loss.name=adaptation", "--set", "loss.mask=[[1, 0], [0, 1]]")
    refused = papers(manifest, out, *flags, *mask, "--losses", "cce,adaptation", code=2).stderr
    assert "mask is for 2 classes, but the data has 3" in refused
    assert not out.exists()
    papers(manifest, out, *flags, "--losses", "cce@dividemix:warmup=1", "--figures")
    found = measures(out / "cells" / "cce@dividemix-warmup=1__symmetric-0.4__0.json")
    assert 0 <= found["final_accuracy"] <= 1
    assert (
        out / "figures" / "confusion_cce@dividemix-warmup=1__symmetric-0.4__0_given.png"
    ).exists()


def test_labels_that_are_noisy_as_they_are(manifest, tmp_path):
    flags = ("--truth-col", "true", "--labels", "label", "--losses", "cce")
    papers(manifest, tmp_path / "out", *flags)
    found = measures(tmp_path / "out" / "cells" / "cce__given__0.json")
    assert found["true_noise"] == pytest.approx(12 / 89, abs=1e-6)


def test_verified_rows_are_the_truth(manifest, tmp_path):
    frame = pd.read_csv(manifest).drop(columns=["true", "split"])
    frame["image"] = [str(manifest.parent / path) for path in frame["image"]]
    frame["verified"] = np.arange(len(frame)) >= 40
    frame.to_csv(tmp_path / "own.csv", index=False)
    flags = ("--losses", "cce", "--noise", "symmetric:0.5", "--allow-outside-root")
    papers(tmp_path / "own.csv", tmp_path / "out", *flags)
    samples = pq.read_table(tmp_path / "out/cells/cce__symmetric-0.5__0.parquet").to_pandas()
    known = samples["row"] >= 40
    assert samples["true"].notna().tolist() == known.tolist()
    given = frame["label"][samples["row"]].to_numpy()
    names = np.array(sorted(frame["label"].unique()))
    assert (names[samples["given"]][~known] == given[~known]).all()
    assert names[samples["true"][known].astype(int)].tolist() == given[known].tolist()
    found = measures(tmp_path / "out/cells/cce__symmetric-0.5__0.json")
    wrong = (samples["given"] != samples["true"])[known].mean()
    assert 0.3 < wrong < 0.7
    assert found["true_noise"] == pytest.approx(wrong, abs=1e-6)
    # A tenth of each class is held out; only those of them that are verified are measured.
    assert found["rows_trained"] + found["rows_measured"] <= 119
    assert 3 <= found["rows_measured"] <= 12


def test_what_cannot_work_is_refused(manifest, tmp_path):
    out = tmp_path / "out"
    noise = ("--noise", "symmetric:0.4")
    said = papers(manifest, out, "--losses", "cce", *noise, code=3).stderr
    assert "--truth-col" in said
    assert "verified" in said
    assert "Did you mean 'cce'" in papers(manifest, out, "--losses", "cc", *noise, code=2).stderr
    truth = ("--truth-col", "true", "--losses", "cce")
    assert "give the noise" in papers(manifest, out, *truth, code=2).stderr
    assert "give one" in papers(manifest, out, *truth, "--labels", "label", *noise, code=2).stderr
    assert "--losses" in papers(manifest, out, "--truth-col", "true", *noise, code=2).stderr
    (out / "other").mkdir(parents=True)
    assert "in use" in papers(manifest, out, *truth, *noise, code=2).stderr
