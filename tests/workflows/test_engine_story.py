"""The engine end to end: a manifest in, records and a ranking out, in every mode."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from labelclean.cli import cli
from labelclean.records.store import records_from_table

COLUMNS = [
    "rank", "row", "sample_id", "path", "label_given", "label_suggested", "action", "p_error",
    "suspicion", "p_given", "p_suggested", "attention", "target_given", "margin",
    "neighbour_agreement", "reason", "kind", "p_outlier", "ambiguity", "duplicate_group",
    "duplicate_kind", "leaks_to",
]  # fmt: skip
ROWS, FLIPS = 160, 16


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> Path:
    """A folder with a table of digit pictures; rows 0 to 15 have a wrong label, two are damaged."""
    folder = tmp_path_factory.mktemp("digits")
    table = load_digits(n_class=3)
    label = table.target[:ROWS].copy()
    label[:FLIPS] = (label[:FLIPS] + 1) % 3
    split = np.where(np.arange(ROWS) < 130, "train", np.where(np.arange(ROWS) < 145, "val", "test"))
    (folder / "images").mkdir()
    for row in range(ROWS):
        pixels = Image.fromarray((table.images[row] * 15.9).astype(np.uint8))
        pixels.resize((32, 32)).convert("RGB").save(folder / f"images/{row}.png")
    (folder / "images/50.png").write_bytes(b"damaged")
    (folder / "images/51.png").unlink()
    names = [f"images/{row}.png" for row in range(ROWS)]
    classes = np.array(["zero", "one", "two"])[label]
    frame = pd.DataFrame(
        {"image": names, "label": classes, "split": split, "verified": split == "val"}
    )
    frame.to_csv(folder / "digits.csv", index=False)
    return folder


def audit(manifest: Path, out: Path, *flags: str, code: int = 0) -> str:
    shared = ["--cache-dir", str(manifest.parent / "cache"), "--threads", "1", "--workers", "1"]
    result = CliRunner().invoke(cli, ["audit", str(manifest), "--out", str(out), *shared, *flags])
    assert result.exit_code == code, result.output
    return result.output


def small(*flags: str) -> tuple[str, ...]:
    return ("--set", "model.image_size=32", *flags)


@pytest.fixture(scope="module")
def run(digits, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("run") / "run"
    text = audit(digits / "digits.csv", out, *small("--loss", "nal"))
    assert "128 samples of 3 classes, lite0 at 32 px, head mode, 20 epochs of nal on cpu" in text
    return out


def test_the_run_folder(run):
    assert {path.name for path in run.iterdir()} >= {
        "issues.parquet",
        "corrected.parquet",
        "records.parquet",
        "report.html",
        "run.json",
    }
    assert not (run / ".work").exists()
    facts = json.loads((run / "run.json").read_text())
    counts = facts["counts"]
    assert (counts["rows"], counts["audited"], counts["unreadable"]) == (160, 130, 2)
    assert facts["classes"] == ["one", "two", "zero"]
    timings = facts["timings"]
    assert {"decode", "features", "train", "score", "write", "total"} <= set(timings)
    assert {"read", "heads", "discriminant", "neighbours", "judge", "report"} <= set(timings)
    assert 0.97 * timings["total"] <= sum(timings.values()) - timings["total"] <= timings["total"]
    assert facts["recipe"]["training"]["mode"] == "head"
    assert facts["peak_memory_bytes"] > 0
    assert set(facts["held_out_accuracy"]) == {"test", "val"}


def test_planted_errors_come_first(run):
    issues = pd.read_parquet(run / "issues.parquet")
    assert list(issues.columns) == COLUMNS
    assert issues["rank"].tolist() == list(range(1, 131))
    assert sorted(issues["row"]) == list(range(130))
    read = issues[issues["action"] != "unreadable"]
    assert roc_auc_score(read["row"] < FLIPS, read["suspicion"]) > 0.9
    assert roc_auc_score(read["row"] < FLIPS, -read["p_given"]) > 0.85
    assert read["attention"].between(0, 1).all()
    assert read["target_given"].between(0, 1).all()
    lost = issues[issues["action"] == "unreadable"]
    assert sorted(lost["row"]) == [50, 51]
    assert lost["reason"].str.len().gt(0).all()
    assert lost["p_given"].isna().all()
    evidence = ["p_error", "p_suggested", "neighbour_agreement"]
    assert read[evidence].stack().between(0, 1).all()
    assert lost[evidence].isna().all(axis=None)


def test_records_are_complete(run):
    table = pq.read_table(run / "records.parquet")
    records = records_from_table(table)
    assert table["row"].to_pylist() == [row for row in range(130) if row not in (50, 51)]
    assert records.p_given.shape == (20, 128)
    assert np.isfinite(records.p_given).all()
    assert np.allclose(records.probs.sum(axis=1), 1, atol=1e-5)
    assert records.target.shape == (128, 3)


def test_a_second_run_is_the_same_to_the_byte_and_recomputes_nothing(digits, run, tmp_path):
    again = tmp_path / "again"
    audit(digits / "digits.csv", again, *small("--loss", "nal"))
    for name in ("records.parquet", "issues.parquet"):
        assert (again / name).read_bytes() == (run / name).read_bytes()
    fresh = tmp_path / "fresh"
    audit(digits / "digits.csv", fresh, *small("--loss", "nal", "--no-cache"))
    assert (fresh / "records.parquet").read_bytes() == (run / "records.parquet").read_bytes()
    assert not (fresh / ".work").exists()
    other = tmp_path / "other"
    audit(digits / "digits.csv", other, *small("--loss", "nal", "--seed", "1"))
    assert (other / "records.parquet").read_bytes() != (run / "records.parquet").read_bytes()


@pytest.mark.parametrize(
    ("mode", "backbone", "loss"),
    [
        ("scratch", "resnet20", "gce"),
        ("finetune", "test_resnet", "nal"),
        ("finetune", "lite0", "imae"),
    ],
)
def test_whole_networks_train_with_the_same_outputs(digits, tmp_path, mode, backbone, loss):
    out = tmp_path / "run"
    flags = ["--mode", mode, "--backbone", backbone, "--loss", loss, "--epochs", "3"]
    if backbone == "test_resnet":
        flags += ["--set", "model.pretrained=false"]
    audit(digits / "digits.csv", out, *small(*flags, "--set", "training.batch_size=32"))
    facts = json.loads((out / "run.json").read_text())
    assert facts["recipe"]["training"]["mode"] == mode
    assert facts["peak_memory_bytes"] > 0
    records = records_from_table(pq.read_table(out / "records.parquet"))
    assert records.p_given.shape == (3, 128)
    assert np.isfinite(records.p_given).all()
    assert list(pd.read_parquet(out / "issues.parquet").columns) == COLUMNS
    # Only a network that no label has touched may change labels without a person.
    frozen = backbone == "lite0"
    assert any("without a person" in sentence for sentence in facts["diagnosis"]) != frozen
    assert frozen or facts["counts"]["relabel"] == 0


def test_the_network_speaks_unless_it_is_left_out(digits, tmp_path):
    """Restricted to frozen features both modes agree; else a trial on planted rows decides."""
    frozen, evidence = "heads,discriminant,neighbours", {}
    for mode in ("head", "finetune"):
        flags = ["--mode", mode, "--loss", "cce", "--epochs", "3"]
        for name, more in (("frozen", ["--evidence", frozen]), ("all", [])):
            out = tmp_path / f"{mode}-{name}"
            # Frozen features have the size that suits them, whatever size is trained at.
            size = small() if mode == "finetune" else ()
            audit(digits / "digits.csv", out, *size, *flags, *more)
            facts = json.loads((out / "run.json").read_text())
            evidence[mode, name] = facts["evidence"]
    same = ["row", "p_error", "suspicion", "action", "label_suggested", "neighbour_agreement"]
    found = [
        pd.read_parquet(tmp_path / f"{m}-frozen/issues.parquet")[same] for m in ("head", "finetune")
    ]
    pd.testing.assert_frame_equal(*found)
    for (mode, name), weights in evidence.items():
        assert set(weights) == {"heads", "discriminant", "neighbours", "cross_fitted", "network",
                                "even_share_of_matrix"}  # fmt: skip
        heard = name == "all" and mode == "finetune"
        assert ("ap" in weights["network"]) == heard
        assert weights["network"]["saw_label"]
        assert sum(weights[one]["weight"] for one in frozen.split(",")) > 0
    assert evidence["head", "frozen"]["network"]["weight"] == 0


def test_a_network_that_judges_its_own_rows_relabels_where_it_is_told_to(digits, tmp_path):
    flags = small("--mode", "scratch", "--backbone", "resnet20", "--epochs", "3")
    flags += ("--set", "training.batch_size=32")
    for mode in ("careful", "relabel"):
        out = tmp_path / mode
        audit(digits / "digits.csv", out, *flags, "--set", f"correction.mode={mode}")
        counts = json.loads((out / "run.json").read_text())["counts"]
        assert counts["flagged"] > 0
        assert (counts["relabel"] > 0) == (mode == "relabel")


def test_networks_that_left_rows_out_may_judge_them(digits, tmp_path):
    """From scratch there is no other source; the report judges again by the same evidence."""
    flags = small("--mode", "scratch", "--backbone", "resnet20", "--epochs", "12", "--loss", "cce")
    for name, value in {"optimizer": "adamw", "learning_rate": 0.02, "augment": "false",
                        "batch_size": 16, "folds": 2}.items():  # fmt: skip
        flags += ("--set", f"training.{name}={value}")
    flags += ("--set", "model.image_size=16")
    text = audit(digits / "digits.csv", tmp_path / "run", *flags)
    assert "2 networks more that leave rows out" in text
    facts = json.loads((tmp_path / "run/run.json").read_text())
    assert facts["evidence"]["cross_fitted"]["weight"] > 0
    assert not facts["evidence"]["cross_fitted"]["saw_label"]
    assert not any("without a person" in sentence for sentence in facts["diagnosis"])
    found = pd.read_parquet(tmp_path / "run/issues.parquet")
    assert roc_auc_score(found["row"] < FLIPS, found["p_error"].fillna(0)) > 0.8
    done = CliRunner().invoke(cli, ["report", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "run/issues.parquet"), found)


def test_networks_that_left_rows_out_speak_beside_frozen_features(digits, tmp_path):
    flags = small("--mode", "finetune", "--epochs", "3", "--loss", "cce", "--set",
                  "training.folds=2", "--set", "training.frozen_stages=3")  # fmt: skip
    audit(digits / "digits.csv", tmp_path / "all", *flags)
    weights = json.loads((tmp_path / "all/run.json").read_text())["evidence"]
    assert 0 < weights["cross_fitted"]["ap"] <= 1
    assert sum(weights[one]["weight"] for one in ("heads", "discriminant", "neighbours")) > 0
    text = audit(digits / "digits.csv", tmp_path / "less", *flags, "--evidence", "heads,network")
    facts = json.loads((tmp_path / "less/run.json").read_text())
    assert facts["evidence"]["cross_fitted"]["weight"] == 0
    assert "leave rows out" not in text, "what may not speak is not trained"


def test_early_stop_says_what_it_looked_at(digits, tmp_path):
    flags = small("--epochs", "30", "--set", "training.patience=2")
    for kind in ("noisy", "clean"):
        out = tmp_path / kind
        audit(digits / "digits.csv", out, *flags, "--set", f"training.early_stop={kind}")
        facts = json.loads((out / "run.json").read_text())
        assert facts["early_stop"]["labels"] == kind
        assert facts["epochs"] <= facts["early_stop"]["kept_epoch"] + 2
        assert facts["epochs"] < 30


def test_features_as_input(tmp_path):
    table = load_digits(n_class=4)
    label = table.target.copy()
    label[:40] = (label[:40] + 1) % 4
    np.savez(tmp_path / "digits.npz", X=table.data.astype(np.float32), y=label)
    audit(tmp_path / "digits.npz", tmp_path / "run")
    issues = pd.read_parquet(tmp_path / "run" / "issues.parquet")
    assert roc_auc_score(issues["row"] < 40, issues["suspicion"]) > 0.95
    text = audit(tmp_path / "digits.npz", tmp_path / "other", "--mode", "scratch", code=2)
    assert "use --mode head" in text
