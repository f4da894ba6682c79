"""The command line in other programs' hands: JSON, exit codes, starts that fail, the cache."""

import json

import numpy as np
import pandas as pd
import pytest

from finished_runs import call, small, write_pictures
from labelclean import RobustClassifier
from planted import Planted, audit_probs, command, plant

pytestmark = pytest.mark.usefixtures("plain_figures")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Planted:
    return plant(tmp_path_factory.mktemp("data"))


def test_a_program_reads_verdicts_and_errors_from_json(data, tmp_path):
    """A CI job asks with --json only: it must learn from that whether and why it failed."""
    flags = ("--pred-probs", data.probs, "--json", "--quiet")
    done = command("audit", data.table, *flags, "--out", tmp_path / "a", "--fail-on", "noise>0.1%")
    assert done.exit_code == 4
    found = json.loads(done.stdout)
    assert found["fail_on"] == {
        "condition": "noise>0.1%", "measured": found["noise_rate"], "holds": True
    }  # fmt: skip
    done = command("audit", data.table, *flags, "--out", tmp_path / "b", "--fail-on", "flagged>90%")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    share = found["counts"]["flagged"] / found["counts"]["audited"]
    assert found["fail_on"] == {"condition": "flagged>90%", "measured": share, "holds": False}
    # Asked again, a complete run gives the same answer and closes the same gate.
    done = command(
        "audit", data.table, *flags, "--out", tmp_path / "a", "--fail-on", "noise>0.1%", "--resume"
    )
    assert done.exit_code == 4
    assert json.loads(done.stdout)["fail_on"]["holds"] is True
    assert command("audit", data.table, "--out", tmp_path / "a", "--resume").exit_code == 0


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (("check", "nowhere.csv", "--json"), 3, "DataError"),
        (("audit", "nowhere.csv", "--json", "--loss", "nothing"), 2, "ConfigError"),
        (("audit", "--json"), 2, "UsageError"),
        (("audit", "x.csv", "--json", "--no-such-flag"), 2, "UsageError"),
        (("benchmark", "nothing", "--json"), 2, "UsageError"),
    ],
)
def test_errors_are_json_where_json_was_asked_for(words, code, kind):
    done = command(*words)
    assert done.exit_code == code
    error = json.loads(done.stdout)["error"]
    assert (error["kind"], error["exit_code"]) == (kind, code)
    assert error["message"] in done.stderr
    assert not command(*(word for word in words if word != "--json")).stdout


def test_check_answers_once(tmp_path, pictures):
    """A summary that says why a manifest is unusable is the answer; no second document follows."""
    names = pictures(4)
    for name in names:
        (tmp_path / name).write_bytes(b"damaged")
    frame = pd.DataFrame({"image": names, "label": [0, 0, 1, 1]})
    frame.to_csv(tmp_path / "bad.csv", index=False)
    done = command("check", tmp_path / "bad.csv", "--json", "--workers", 0)
    assert done.exit_code == 3
    assert json.loads(done.stdout)["usable"] is False


def test_a_wrong_target_name_is_wrong_usage(data, tmp_path):
    run = audit_probs(data, tmp_path / "run")
    assert command("export", run, tmp_path / "clean.xlsx").exit_code == 2
    assert command("predict", run, data.table, "--out", tmp_path / "p.csv").exit_code == 2


def test_a_start_that_fails_leaves_what_was_there(data, tmp_path):
    """Every picture damaged: found only when they are read, which is before anything is claimed."""
    manifest = write_pictures(tmp_path)
    for path in (tmp_path / "images").iterdir():
        path.write_bytes(b"damaged")
    out = tmp_path / "run"
    flags = ("--out", out, *small(tmp_path / "cache"), "--quiet")
    for _ in range(2):
        done = command("audit", manifest, *flags)
        assert done.exit_code == 3, done.output
        assert not out.exists()
    bad = tmp_path / "bad.npy"
    np.save(bad, np.full_like(np.load(data.probs), np.nan))
    for _ in range(2):
        assert command("audit", data.table, "--pred-probs", bad, "--out", out).exit_code == 3
        assert not out.exists()
    audit_probs(data, out)
    before = (out / "issues.parquet").read_bytes()
    done = command("audit", manifest, *flags, "--overwrite")
    assert done.exit_code == 3
    assert (out / "run.json").is_file()
    assert (out / "issues.parquet").read_bytes() == before


def test_an_interrupted_audit_says_how_to_go_on(data, tmp_path, monkeypatch):
    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("labelclean.workflows.audit.judge_with_decisions", interrupt)
    done = command(
        "audit", data.table, "--pred-probs", data.probs, "--out", tmp_path / "r", "--json"
    )
    assert done.exit_code == 130
    assert "--resume" in done.stderr
    assert json.loads(done.stdout)["error"]["kind"] == "KeyboardInterrupt"
    monkeypatch.undo()
    done = command(
        "audit", data.table, "--pred-probs", data.probs, "--out", tmp_path / "r", "--resume"
    )
    assert done.exit_code == 0


def test_predict_and_estimators_use_the_cache_of_the_audit(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setenv("LABELCLEAN_CACHE", str(cache))
    manifest = write_pictures(tmp_path)
    flags = ("--mode", "head", "--epochs", 2, "--loss", "cce", "--workers", 1, "--quiet")
    assert json.loads(command("cache", "--json").stdout)["features"] == 0
    call("audit", manifest, "--out", tmp_path / "run", *flags)
    held = json.loads(command("cache", "show", "--json").stdout)
    assert held["folder"] == str(cache)
    assert held["chosen_by"] == "LABELCLEAN_CACHE"
    assert held["features"] == 119
    assert held["bytes"] == sum(path.stat().st_size for path in cache.rglob("*.npy"))
    call("predict", tmp_path / "run", manifest, "--out", tmp_path / "p.parquet", "--quiet")
    frame = pd.read_csv(manifest).drop(index=50)
    paths = [str(tmp_path / name) for name in frame.image]
    model = RobustClassifier(mode="head", epochs=2, random_state=0).fit(paths, frame.label)
    probs = model.predict_proba(paths)
    # Not one feature was computed again: no shard came.
    assert json.loads(command("cache", "--json").stdout) == held
    (cache / "note.txt").write_text("mine")
    (cache / "mine").mkdir()
    (cache / "mine" / "own.npy").write_bytes(b"mine")
    cleared = json.loads(command("cache", "clear", "--json").stdout)
    assert (cleared["features"], cleared["cleared"]) == (119, True)
    left = sorted(path.relative_to(cache).as_posix() for path in cache.rglob("*"))
    assert left == ["mine", "mine/own.npy", "note.txt"]
    assert np.array_equal(model.predict_proba(paths), probs)
    assert "holds 119 features" in command("cache").stdout
    assert command("cache", "burn").exit_code == 2


def test_losses_are_compared_on_own_data(tmp_path):
    """Without a truth errors are planted; with one the labels are taken as they are."""
    from sklearn.datasets import load_digits

    digits = load_digits(n_class=4)
    rng = np.random.default_rng(0)
    label = np.where(rng.random(len(digits.target)) < 0.2, rng.integers(0, 4, len(digits.target)),
                     digits.target)  # fmt: skip
    table = tmp_path / "own.npz"
    np.savez(table, X=digits.data.astype(np.float32), y=label, true=digits.target)
    flags = ("--losses", "cce,gce:q=0.5", "--set", "training.epochs=3", "--quiet")
    done = call("compare", table, *flags, "--seeds", "0,1", "--out", tmp_path / "c", "--json")
    found = json.loads(done.stdout)
    assert found["labels_taken_for_the_truth"] is True
    assert {(line["loss"], line["noise"], line["seeds"]) for line in found["losses"]} == {
        ("cce", "symmetric:0.2", 2), ("gce:q=0.5", "symmetric:0.2", 2)
    }  # fmt: skip
    assert all(line["ap_p_error"] > 0.5 for line in found["losses"])
    assert all(line["final_accuracy_spread"] is not None for line in found["losses"])
    with_truth = ("--truth-col", "true", "--out", tmp_path / "t", "--seeds", "0")
    said = call("compare", table, *flags, *with_truth).stdout
    assert "Labels as given" in said
    assert "One seed says nothing about chance" in said
    again = json.loads(call("compare", table, *flags, *with_truth, "--json").stdout)
    wrong = (label != digits.target).mean()
    for line in again["losses"]:
        assert line["noise"] == "given"
        assert line["label_accuracy_corrected"] > 1 - wrong
    assert command("compare", table, "--losses", "nothing", "--out", tmp_path / "n").exit_code == 2
    assert not (tmp_path / "n").exists()
