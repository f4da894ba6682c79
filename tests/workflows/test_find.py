import warnings

import numpy as np
import pandas as pd
import pytest
from simulated_arrays import simulated
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from labelclean import find_label_issues
from labelclean.benchmark.zoo import out_of_fold
from labelclean.calibration import arrays
from labelclean.correction.outlook import outlook
from labelclean.correction.people import judge_with_decisions
from labelclean.correction.policy import Policy
from labelclean.errors import DataError
from labelclean.evidence.value import Evidence
from planted import NAMES, audit_probs, command, plant
from small_manifests import manifest_of

COLUMNS = ["rank", "row", "label_given", "label_suggested", "action", "p_error", "suspicion",
           "p_given", "p_suggested"]  # fmt: skip


def test_one_row_for_each_row_most_suspect_first():
    label, probs, true = simulated()
    table = find_label_issues(label, probs)
    assert list(table.columns) == COLUMNS
    assert table["rank"].tolist() == list(range(1, 3001))
    assert sorted(table["row"]) == list(range(3000))
    assert table["p_error"].is_monotonic_decreasing
    assert table["suspicion"].between(0, 1).all()
    np.testing.assert_array_equal(table["label_given"], label[table["row"]])
    kept = table["action"] == "keep"
    assert (table["label_given"] == table["label_suggested"])[kept].all()
    wrong = (label != true)[table["row"]]
    assert wrong[~kept].mean() > 0.8
    relabelled = table[table["action"] == "relabel"]
    assert (relabelled["label_suggested"] == true[relabelled["row"]]).mean() > 0.95
    assert table.attrs["noise_rate"] == pytest.approx(table["p_error"].mean())


def test_names_come_back_as_they_came_in():
    label, probs, _ = simulated()
    names = np.array(["ant", "bee", "cat", "dog"])
    plain = find_label_issues(label, probs)
    named = find_label_issues(names[label], probs)
    np.testing.assert_array_equal(names[plain["label_suggested"]], named["label_suggested"])
    other = find_label_issues(names[label].tolist(), probs[:, ::-1], classes=names[::-1])
    np.testing.assert_allclose(other["p_error"], plain["p_error"], atol=1e-4)


def test_policy_and_verified_are_honoured():
    label, probs, _ = simulated()
    first = find_label_issues(label, probs)["row"][0]
    verified = np.zeros(3000, dtype=bool)
    verified[first] = True
    table = find_label_issues(label, probs, verified=verified, policy=Policy("review", budget=7))
    assert (table["action"] == "review").sum() == 7
    row = table[table["row"] == first].iloc[0]
    assert row["action"] == "keep"
    assert row["p_error"] == 0


@pytest.mark.parametrize("size", [4, 20, 80])
def test_any_tile_gives_the_same_answer(size, monkeypatch):
    label, probs, _ = simulated(1200, size, inverse_temperature=7.0)
    whole = find_label_issues(label, probs)
    for rows in (1, 7, 100_000):
        monkeypatch.setattr(arrays, "TILE_ROWS", rows)
        monkeypatch.setattr(arrays, "LEAST_TILE_ROWS", rows)
        pd.testing.assert_frame_equal(find_label_issues(label, probs), whole, check_exact=True)


def test_memory_mapped_float32_and_fortran_order_agree(tmp_path):
    label, probs, _ = simulated()
    single = probs.astype(np.float32)
    np.save(tmp_path / "p.npy", single)
    mapped = np.load(tmp_path / "p.npy", mmap_mode="r")
    pd.testing.assert_frame_equal(
        find_label_issues(label, mapped), find_label_issues(label, single)
    )
    pd.testing.assert_frame_equal(
        find_label_issues(label, np.asfortranarray(single)), find_label_issues(label, single)
    )


def test_features_join_where_they_help():
    label, probs, true = simulated(1500, inverse_temperature=1.5)
    rng = np.random.default_rng(0)
    features = 4 * rng.standard_normal((4, 6))[true] + rng.standard_normal((1500, 6))
    table = find_label_issues(label, probs, features)
    wrong = label != true
    alone = find_label_issues(label, probs)
    assert wrong[table["row"][:150]].mean() > wrong[alone["row"][:150]].mean()
    assert table["neighbour_agreement"].between(0, 1 + 1e-9).all()
    with pytest.raises(DataError, match="features has shape"):
        find_label_issues(label, probs, features[:5])


def faulty(change):
    label, probs, _ = simulated(400)
    change(probs)
    return label, probs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.__setitem__((7, 1), np.nan), r"1 rows hold NaN or infinity \(rows 7\)"),
        (lambda p: p.__setitem__((8, 1), np.inf), "NaN or infinity"),
        (lambda p: p.__setitem__((3, slice(None)), [1.5, -0.5, 0, 0]), "1 rows hold negative"),
        (lambda p: p.__imul__(0.5), "400 rows do not sum to one"),
    ],
)
def test_bad_probabilities_are_refused(change, message):
    with pytest.raises(DataError, match=message):
        find_label_issues(*faulty(change))


@pytest.mark.parametrize(
    ("labels", "probs", "message"),
    [
        ([], np.zeros((0, 3)), "not empty"),
        ([0, 1], np.full(2, 0.5), "must be"),
        ([0, 1], np.ones((2, 1)), "at least two classes"),
        ([0, 1, 1], np.full((2, 2), 0.5), "one label"),
        ([0, 2], np.full((2, 2), 0.5), "outside 0 to 1"),
        ([0, -1], np.full((2, 2), 0.5), "outside 0 to 1"),
        ([0.0, np.nan], np.full((2, 2), 0.5), "fractions or hold NaN"),
        (["a", "b"], np.full((2, 3), 1 / 3), "2 distinct labels"),
    ],
)
def test_labels_and_columns_must_match(labels, probs, message):
    with pytest.raises(DataError, match=message):
        find_label_issues(labels, probs)


def test_permuted_columns_are_noticed():
    label, probs, _ = simulated()
    with pytest.warns(UserWarning, match="look permuted"):
        find_label_issues(label, probs[:, [1, 0, 2, 3]])


def test_memorised_labels_are_noticed():
    label, _, _ = simulated()
    with pytest.warns(UserWarning, match="trained on these rows"):
        find_label_issues(label, np.eye(4)[label] * 0.99 + 0.0025)


def test_no_information_no_flags():
    label, _, _ = simulated()
    with pytest.warns(UserWarning, match="no estimate"):
        table = find_label_issues(label, np.full((3000, 4), 0.25))
    assert (table["action"] == "keep").all()
    assert table["p_error"].isna().all()
    assert table.attrs["noise_rate"] is None


def test_clean_digits_are_left_alone():
    x, y = load_digits(return_X_y=True)
    probs = out_of_fold(LogisticRegression(max_iter=500), x / 16, y, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = find_label_issues(y, probs)
    assert table.attrs["noise_rate_interval"][0] == 0.0
    assert (table["action"] == "relabel").mean() < 0.01


@pytest.mark.parametrize("with_features", [False, True])
def test_an_audit_of_the_same_evidence_says_the_same(with_features, tmp_path, plain_figures):
    data = plant(tmp_path)
    probs, features = np.load(data.probs), np.load(data.features)
    flags = ("--features", data.features) if with_features else ()
    issues = pd.read_parquet(audit_probs(data, tmp_path / "run", *flags) / "issues.parquet")
    names = np.array(NAMES)[data.given]
    found = find_label_issues(names, probs, features if with_features else None)
    issues, found = issues.set_index("row"), found.set_index("row")
    for name in ("rank", "label_suggested", "action", "p_error", "p_suggested", "suspicion"):
        same = issues[name].loc[found.index].astype(found[name].dtype)
        pd.testing.assert_series_equal(same, found[name], check_exact=False, atol=1e-7)


@pytest.mark.usefixtures("plain_figures")
def test_clean_data_passes_and_two_errors_do_not(tmp_path):
    """Zero flagged rows are allowed, and nothing hides two errors that stand out."""
    for planted, code in ((0, 0), (2, 4)):
        data = plant(tmp_path / str(planted), 400, planted)
        out = tmp_path / f"run {planted}"
        flags = ("--pred-probs", data.probs, "--out", out, "--fail-on", "flagged>0")
        done = command("audit", data.table, *flags)
        assert done.exit_code == code, done.output
        issues = pd.read_parquet(out / "issues.parquet")
        flagged = issues[issues["action"] != "keep"]
        assert sorted(flagged["row"]) == list(range(planted))
        assert ("may as well all be right" in done.stdout) == (planted == 0)
        table = find_label_issues(np.array(NAMES)[data.given], np.load(data.probs))
        assert (table["action"] != "keep").sum() == planted


def test_weak_evidence_leads_with_the_interval_and_names_no_pattern():
    """Where flips are even and the model doubts, what the cut may miss is said, no pattern is."""
    rng = np.random.default_rng(5)
    true = rng.integers(0, 10, 1500)
    label = np.where(rng.random(1500) < 0.05, (true + rng.integers(1, 10, 1500)) % 10, true)
    logits = rng.normal(0, 1, (1500, 10))
    logits[np.arange(1500), true] += 3
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    evidence = Evidence(np.arange(1500), probs.astype(np.float32), None, {}, unreadable={})
    manifest = manifest_of([f"class {code}" for code in label])
    audit = judge_with_decisions(manifest, evidence, {}, Policy())
    low, high = audit.noise_interval
    assert high - low > audit.noise_rate
    assert audit.diagnosis[0].startswith(f"Between {low:.1%} and {high:.1%} of the labels")
    assert "wrong labels are expected among" in audit.diagnosis[1]
    assert "up to" in audit.diagnosis[1]
    assert not any("follow" in said or "depend" in said for said in audit.diagnosis)
    left = outlook(audit)
    assert left["flagged"] + (audit.action == "keep").sum() == 1500
    assert left["expected_missed"] == pytest.approx(
        audit.p_error[audit.action == "keep"].sum(), abs=0.01
    )
