"""`labelclean audit`: what can be brought, what is compared, what the exit code says."""

import json

import numpy as np
import pandas as pd
import pytest

from planted import NAMES, PLANTED, ROWS, Planted, audit_probs, command, plant

OWN = ["label_given", "label_action", "label_confidence", "p_error"]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Planted:
    return plant(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "run"
    return audit_probs(data, out, "--truth-col", "true_label")


def facts(run):
    return json.loads((run / "run.json").read_text(encoding="utf-8"))


def test_probabilities_need_no_pictures_and_no_training(data, run):
    issues = pd.read_parquet(run / "issues.parquet")
    assert issues["rank"].tolist() == list(range(1, ROWS + 1))
    assert data.wrong[issues["row"][:PLANTED]].mean() > 0.9
    assert issues["attention"].isna().all()
    assert issues["margin"].isna().all()
    probs = np.load(data.probs)
    expected = probs[issues["row"], data.given[issues["row"]]]
    np.testing.assert_allclose(issues["p_given"], expected, atol=1e-6)
    assert not (run / "model").exists()
    records = pd.read_parquet(run / "records.parquet")
    assert set(records.columns) == {"row", "sample_id", "label", "posterior", "signal_p_given"}
    assert facts(run)["epochs"] == 0


def test_the_corrected_table(data, run):
    given, corrected = pd.read_csv(data.table), pd.read_parquet(run / "corrected.parquet")
    assert list(corrected.columns) == [*given.columns, *OWN]
    pd.testing.assert_frame_equal(
        corrected.drop(columns=["label", *OWN]), given.drop(columns="label"), check_dtype=False
    )
    moved = corrected["label_action"] == "relabel"
    assert moved.sum() > 30
    assert (corrected["label"] != corrected["label_given"]).equals(moved)
    assert corrected["label_given"].tolist() == given["label"].tolist()


def test_truth_is_compared_with_and_never_learned_from(data, run, tmp_path):
    truth = facts(run)["truth"]
    assert truth["column"] == "true_label"
    assert (truth["rows"], truth["wrong"]) == (ROWS, PLANTED)
    assert truth["auroc"] > 0.99
    assert truth["ap"] > 0.95
    assert truth["best_f1"] >= truth["f1"] > 0.9
    assert truth["noise_rate_error"] == pytest.approx(abs(facts(run)["noise_rate"] - 0.1), abs=1e-6)
    assert truth["label_accuracy_given"] == pytest.approx(0.9)
    assert truth["label_accuracy_corrected"] > 0.97
    matrix = pd.read_csv(run / "confusion_given_true.csv", index_col=0)
    true, given = (pd.Series(np.array(NAMES)[codes]) for codes in (data.true, data.given))
    assert matrix.to_numpy().tolist() == pd.crosstab(given, true).to_numpy().tolist()
    corrected = pd.read_parquet(run / "corrected.parquet")["label"].to_numpy()
    after = pd.read_csv(run / "confusion_corrected_true.csv", index_col=0).to_numpy()
    assert np.trace(after) == (corrected == true).sum()
    assert (run / "confusion_corrected_true.png").read_bytes()[:4] == b"\x89PNG"
    without = audit_probs(data, tmp_path / "run")
    assert "truth" not in facts(without)
    assert not (without / "confusion_given_true.csv").exists()
    one, two = (pd.read_parquet(folder / "issues.parquet") for folder in (run, without))
    pd.testing.assert_frame_equal(one, two)


def test_features_stand_in_for_pictures(data, tmp_path):
    flags = ("--features", data.features, "--epochs", 2, "--out", tmp_path / "run", "--loss", "gce")
    done = command("audit", data.table, *flags, "--truth-col", "true_label", "--json", "--quiet")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said == facts(tmp_path / "run")
    assert said["truth"]["auroc"] > 0.9
    assert said["input"]["features"]
    issues = pd.read_parquet(tmp_path / "run" / "issues.parquet")
    assert issues["attention"].notna().all()
    assert issues["neighbour_agreement"].notna().all()


def test_features_beside_probabilities_add_the_neighbours(data, tmp_path):
    run = audit_probs(data, tmp_path / "run", "--features", data.features)
    assert pd.read_parquet(run / "issues.parquet")["neighbour_agreement"].between(0, 1.001).all()


def test_limit_and_held_out_rows(data, tmp_path):
    table = pd.read_csv(data.table)
    table["split"] = np.where(np.arange(ROWS) % 4 == 0, "test", "train")
    table.to_csv(tmp_path / "split.csv", index=False)
    flags = ("--pred-probs", data.probs, "--limit", 200)
    out = tmp_path / "run"
    done = command("audit", tmp_path / "split.csv", "--out", out, *flags)
    assert done.exit_code == 0, done.output
    assert len(pd.read_parquet(out / "issues.parquet")) == 150
    corrected = pd.read_parquet(out / "corrected.parquet")
    assert len(corrected) == 200
    assert corrected["label_action"].isna().equals(corrected["split"] == "test")
    flags = (*flags, "--audit-split", "test", "--overwrite")
    assert command("audit", tmp_path / "split.csv", "--out", out, *flags).exit_code == 0
    assert len(pd.read_parquet(out / "issues.parquet")) == 200


def test_baseline_says_what_changed(data, run, tmp_path):
    table = pd.read_csv(data.table)
    repaired = table.index < 10
    table.loc[repaired, "label"] = table["true_label"][repaired]
    broken = np.flatnonzero(~data.wrong)[:3]
    table.loc[broken, "label"] = [NAMES[(code + 1) % 3] for code in data.true[broken]]
    table.iloc[::-1].to_csv(tmp_path / "next.csv", index=False)
    np.save(tmp_path / "probs.npy", np.load(data.probs)[::-1])
    flags = ("--pred-probs", tmp_path / "probs.npy", "--baseline", run, "--out", tmp_path / "next")
    done = command("audit", tmp_path / "next.csv", *flags, "--json")
    assert done.exit_code == 0, done.output
    changes = json.loads(done.stdout)["baseline"]
    assert set(changes["no_longer_flagged"]) == {f"s{row}" for row in range(10)}
    assert set(changes["newly_flagged"]) == {f"s{row}" for row in broken}
    assert changes["noise_rate_after"] < changes["noise_rate_before"]
    assert changes["only_before"] == changes["only_after"] == []
    done = command("audit", tmp_path / "next.csv", *flags, "--overwrite")
    assert "10 no longer flagged" in done.stdout
    assert "3 newly flagged" in done.stdout


@pytest.mark.usefixtures("plain_figures")
@pytest.mark.parametrize(
    ("condition", "code"),
    [("noise>2%", 4), ("noise>50%", 0), ("flagged>=1", 4), ("relabel>90%", 0), ("review<0", 0)],
)
def test_the_gate(data, tmp_path, condition, code):
    flags = ("--pred-probs", data.probs, "--out", tmp_path / "run", "--fail-on", condition)
    done = command("audit", data.table, *flags)
    assert done.exit_code == code, done.output
    assert (tmp_path / "run" / "run.json").is_file()
    assert ("holds" in done.stderr) == (code == 4)


@pytest.mark.parametrize("condition", ["noise", "nose>2%", "noise>two", "noise>1.2.3", ""])
def test_a_condition_that_is_none(data, tmp_path, condition):
    flags = ("--pred-probs", data.probs, "--out", tmp_path / "run", "--fail-on", condition)
    assert command("audit", data.table, *flags).exit_code == 2
    assert not (tmp_path / "run").exists()


def test_an_existing_run_is_kept_unless_told(data, run, tmp_path):
    before = (run / "issues.parquet").read_bytes()
    flags = ("--pred-probs", data.probs, "--out")
    done = command("audit", data.table, *flags, run)
    assert done.exit_code == 2
    assert "--overwrite" in done.stderr
    assert (run / "issues.parquet").read_bytes() == before
    (tmp_path / "mine.txt").write_text("precious")
    done = command("audit", data.table, *flags, tmp_path, "--overwrite")
    assert done.exit_code == 2
    assert (tmp_path / "mine.txt").read_text() == "precious"
    (tmp_path / "file").write_text("x")
    assert command("audit", data.table, *flags, tmp_path / "file").exit_code == 2


def test_overwrite_leaves_nothing_of_the_run_before(data, tmp_path):
    out = audit_probs(data, tmp_path / "run", "--truth-col", "true_label")
    (out / "decisions.jsonl").write_text("")
    (out / "model").mkdir()
    audit_probs(data, out, "--overwrite")
    left = {path.name for path in out.iterdir()}
    assert not left & {"model", "confusion_given_true.csv", "confusion_corrected_true.png"}
    assert "decisions.jsonl" in left


def save(folder, array):
    np.save(folder / "bad.npy", array, allow_pickle=True)
    return folder / "bad.npy"


@pytest.mark.parametrize(
    ("flag", "make", "words"),
    [
        ("--pred-probs", lambda p: p[:-1], "399 rows"),
        ("--pred-probs", lambda p: p[:, :2], "2 columns"),
        ("--pred-probs", lambda p: p * 2, "do not sum to one"),
        ("--pred-probs", lambda p: np.where(p > 0.9, np.nan, p), "NaN or infinity"),
        ("--pred-probs", lambda p: p[:, 0], "shape"),
        ("--pred-probs", lambda p: p.astype(str), "must hold numbers"),
        ("--pred-probs", lambda p: p.astype(object), "no readable .npy"),
        ("--features", lambda p: p[:7], "7 rows"),
        ("--features", lambda p: np.where(p > 0.9, np.inf, p), "NaN or infinity"),
        ("--features", lambda p: p.astype(complex), "must hold numbers"),
    ],
)
def test_arrays_that_do_not_fit(data, tmp_path, flag, make, words):
    bad = save(tmp_path, make(np.load(data.probs)))
    done = command("audit", data.table, flag, bad, "--out", tmp_path / "run")
    assert done.exit_code == 3, done.output
    assert words in done.stderr
    assert not (tmp_path / "run").exists() or not (tmp_path / "run" / "run.json").exists()


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (("--truth-col", "nothing"), 3, "nothing"),
        (("--truth-col", "label"), 2, "label column itself"),
        (("--truth-col", "note"), 3, "none of its values is a class"),
        (("--baseline", "nowhere"), 3, "run.json"),
        (("--label-col", "nothing"), 3, "nothing"),
        (("--resume", "--overwrite"), 2, "exclude"),
    ],
)
def test_refusals_come_before_anything_is_written(data, tmp_path, flags, code, words):
    done = command(
        "audit", data.table, "--pred-probs", data.probs, "--out", tmp_path / "run", *flags
    )
    assert done.exit_code == code, done.output
    assert words in done.stderr
    assert not (tmp_path / "run").exists()


def test_no_image_column_is_refused_without_arrays(data, tmp_path):
    done = command("audit", data.table, "--out", tmp_path / "run")
    assert done.exit_code == 3
    assert "--image-col" in done.stderr


def test_same_input_same_bytes(data, run, tmp_path):
    again = audit_probs(data, tmp_path / "elsewhere" / "run", "--truth-col", "true_label")
    for name in ("issues.parquet", "corrected.parquet", "records.parquet"):
        assert (again / name).read_bytes() == (run / name).read_bytes()
