"""What the engine refuses, and in which words."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from labelclean.cli import cli


def audit(manifest: Path, out: Path, *flags: str) -> tuple[int, str]:
    shared = ["--no-cache", "--threads", "1", "--workers", "1", "--set", "model.image_size=32"]
    result = CliRunner().invoke(cli, ["audit", str(manifest), "--out", str(out), *shared, *flags])
    return result.exit_code, result.output


def write(folder: Path, names: list[str], labels: list[str], **columns: list[str]) -> Path:
    head = ["image", "label", *columns]
    rows = zip(names, labels, *columns.values(), strict=True)
    lines = [",".join(head), *(",".join(row) for row in rows)]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    return folder / "table.csv"


def test_all_images_unreadable(tmp_path):
    names = ["a.png", "b.png", "c.png"]
    for name in names:
        (tmp_path / name).write_bytes(b"no picture")
    manifest = write(tmp_path, names, ["x", "y", "x"])
    code, text = audit(manifest, tmp_path / "run")
    assert code == 3
    assert "3 of 3 rows cannot be read" in text
    assert "row 0 (a.png): " in text
    assert not (tmp_path / "run" / "run.json").exists()


def test_one_class_left_after_unreadable_rows(tmp_path, pictures):
    manifest = write(tmp_path, [*pictures(3), "lost.png"], ["x", "x", "x", "y"])
    code, text = audit(manifest, tmp_path / "run")
    assert code == 3
    assert "3 readable rows of 1 classes" in text


@pytest.mark.parametrize("mode", ["head", "scratch"])
def test_a_class_with_one_sample_and_fewer_samples_than_a_batch(tmp_path, pictures, mode):
    manifest = write(tmp_path, pictures(5), ["x", "x", "x", "x", "y"])
    flags = ["--mode", mode, "--epochs", "2", "--set", "training.batch_size=64"]
    backbone = ["--backbone", "resnet20"] if mode == "scratch" else []
    code, text = audit(manifest, tmp_path / "run", *flags, *backbone)
    assert code == 0, text
    assert json.loads((tmp_path / "run" / "run.json").read_text())["counts"]["audited"] == 5


def test_a_batch_of_one(tmp_path, pictures):
    manifest = write(tmp_path, pictures(4), ["x", "x", "y", "y"])
    flags = ["--mode", "scratch", "--backbone", "resnet20", "--set", "training.batch_size=1"]
    code, text = audit(manifest, tmp_path / "run", *flags)
    assert code == 2
    assert "batch norms need at least two samples" in text


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--loss", "imea"], "Did you mean 'imae'"),
        (["--loss", "imae", "--set", "loss.t=3"], "no parameter 't'"),
        (["--backbone", "resnet_50"], "Did you mean"),
        (["--set", "training.epoch=3"], "Did you mean 'epochs'"),
        (["--set", "training.early_stop=noisy"], "no readable row has split 'val'"),
        (["--resume", "--overwrite"], "exclude each other"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_spent(tmp_path, pictures, flags, words):
    manifest = write(tmp_path, pictures(4), ["x", "x", "y", "y"])
    code, text = audit(manifest, tmp_path / "run", *flags)
    assert code == 2, text
    assert words in text
    assert not (tmp_path / "run" / "run.json").exists()


def test_folders_are_not_overwritten_by_accident(tmp_path, pictures):
    manifest = write(tmp_path, pictures(6), ["x", "y"] * 3)
    run = tmp_path / "run"
    assert audit(manifest, run, "--epochs", "2")[0] == 0
    before = (run / "records.parquet").read_bytes()
    code, text = audit(manifest, run, "--epochs", "3")
    assert code == 2
    assert "holds a finished run" in text
    assert (run / "records.parquet").read_bytes() == before
    assert audit(manifest, run, "--epochs", "3", "--overwrite")[0] == 0
    assert (run / "records.parquet").read_bytes() != before
    assert "nothing to resume" in audit(manifest, run, "--resume")[1]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    for flags in ([], ["--overwrite"]):
        code, text = audit(manifest, tmp_path / "mine", *flags)
        assert code == 2
        assert "not a run of labelclean" in text


def test_a_run_is_not_resumed_with_other_settings(tmp_path, pictures, monkeypatch):
    manifest = write(tmp_path, pictures(6), ["x", "y"] * 3)
    run = tmp_path / "run"

    def die(*_args, **_more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("labelclean.training.fit.predict_probs", die)
        assert audit(manifest, run, "--epochs", "3")[0] == 130
    code, text = audit(manifest, run)
    assert code == 2
    assert "a run that did not end" in text
    code, text = audit(manifest, run, "--resume", "--epochs", "4")
    assert code == 2
    assert "recipe.training.epochs was 3, is 4" in text
    picture = tmp_path / "images" / "0.png"
    content = picture.read_bytes()
    picture.write_bytes((tmp_path / "images" / "1.png").read_bytes())
    code, text = audit(manifest, run, "--resume", "--epochs", "3")
    assert code == 2
    assert "some images have changed" in text
    picture.write_bytes(content)
    assert audit(manifest, run, "--resume", "--epochs", "3")[0] == 0
    assert (run / "run.json").is_file()


def test_a_loss_that_explodes_names_epoch_and_samples(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "x.npz", X=rng.normal(size=(20, 3)), y=np.arange(20) % 2)
    flags = ["--set", "training.learning_rate=1e38", "--set", "training.optimizer=sgd"]
    code, text = audit(tmp_path / "x.npz", tmp_path / "run", *flags)
    assert code == 1
    assert "is not finite for the samples" in text
    assert "epoch" in text


def test_a_full_disk_while_caching(tmp_path, pictures, monkeypatch):
    import errno

    manifest = write(tmp_path, pictures(6), ["x", "y"] * 3)

    def full(*_args, **_more):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("labelclean.training.cache.np.save", full)
        code, text = audit(manifest, tmp_path / "run")
    assert code == 1
    assert "the disk is full" in text
    assert audit(manifest, tmp_path / "run", "--resume")[0] == 0
