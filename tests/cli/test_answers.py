"""People's answers count the same everywhere: page, report, export and the next audit.

The model is far too sure of itself: it has learned the wrong labels of one kind of row by heart, so
its own estimate is much too low, as it is where evidence is weak.
"""

import json

import numpy as np
import pandas as pd
import pytest

from labelclean.review.rows import Wanted
from labelclean.review.state import open_review
from planted import NAMES, Planted, audit_probs, command, plant

ROWS, PLANTED, ANSWERED = 400, 80, 80
pytestmark = pytest.mark.usefixtures("plain_figures")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Planted:
    data = plant(tmp_path_factory.mktemp("data"), ROWS, PLANTED)
    probs = np.load(data.probs)
    # Of three wrong labels in four the model has come to believe the label it was given.
    fooled = np.flatnonzero(data.wrong)[np.arange(PLANTED) % 4 > 0]
    probs[fooled] = 0.5 * probs[fooled] + 0.5 * np.eye(len(NAMES))[data.given[fooled]]
    probs[fooled] = probs[fooled] ** 0.7
    np.save(data.probs, probs / probs.sum(axis=1, keepdims=True))
    return data


@pytest.fixture(scope="module")
def answered(data, tmp_path_factory, plain_figures):
    """Give a run, its decisions, and what the page said about every row after the last answer."""
    run = audit_probs(data, tmp_path_factory.mktemp("run") / "run")
    with open_review(run) as desk:
        order = [line["row"] for line in desk.page(Wanted(), "informative", 0, ROWS)["rows"]]
        for row in order[:ANSWERED]:
            label = NAMES[data.true[row]]
            state = desk.decide(
                {"row": row, "sample_id": f"s{row}", "decision": "relabel", "label": label}
            )
        lines = desk.page(Wanted(), "row", 0, ROWS)["rows"]
    p_error = np.array([line["p_error"] for line in lines])
    still = np.setdiff1d(np.arange(ROWS), order[:ANSWERED])
    return run, run / "decisions.jsonl", state["estimate"], p_error, still


@pytest.fixture(scope="module")
def own(answered):
    """The run's own judgement, before anybody answered."""
    facts = json.loads((answered[0] / "run.json").read_text(encoding="utf-8"))
    return facts, pd.read_parquet(answered[0] / "issues.parquet").set_index("row").sort_index()


@pytest.fixture(scope="module")
def exported(answered, own, data, tmp_path_factory):
    """An export by the decisions, made before any report."""
    run, decisions, *_ = answered
    target = tmp_path_factory.mktemp("out") / "clean.parquet"
    done = command("export", run, target, "--decisions", decisions, "--with-evidence")
    assert done.exit_code == 0, done.output
    return pd.read_parquet(target)


@pytest.fixture(scope="module")
def second(answered, own, data, tmp_path_factory):
    """Another audit of the same rows, which is told the decisions."""
    out = tmp_path_factory.mktemp("second") / "run"
    return audit_probs(data, out, "--decisions", answered[1])


@pytest.fixture(scope="module")
def reported(answered, exported, second):
    run, decisions, *_ = answered
    done = command("report", run, "--decisions", decisions)
    assert done.exit_code == 0, done.output
    return done.stdout


def facts(run):
    return json.loads((run / "run.json").read_text(encoding="utf-8"))


def issues(run):
    return pd.read_parquet(run / "issues.parquet").set_index("row").sort_index()


def test_the_story_is_worth_telling(data, answered, own):
    """The model's own estimate is far too low; the answers know better."""
    _, _, page, p_error, still = answered
    assert own[0]["noise_rate"] < 0.6 * PLANTED / ROWS
    low, high = page["noise_interval"]
    assert low <= PLANTED / ROWS <= high
    wrong = data.wrong[still]
    before, after = own[1]["p_error"].to_numpy()[still], p_error[still]
    assert abs(after.mean() - wrong.mean()) < abs(before.mean() - wrong.mean())
    assert ((after - wrong) ** 2).mean() < ((before - wrong) ** 2).mean()


def test_report_says_what_the_page_says(answered, reported):
    run, _, page, p_error, still = answered
    said, found = facts(run), issues(run)
    assert said["noise_rate"] == pytest.approx(page["noise_rate"], abs=1e-6)
    assert said["noise_rate_interval"] == pytest.approx(page["noise_interval"], abs=1e-6)
    assert said["answers"]["message"] == page["message"]
    np.testing.assert_allclose(found["p_error"].to_numpy()[still], p_error[still], atol=1e-4)
    assert f"{page['noise_interval'][1]:.1%}" in reported
    assert "95 % interval" in reported


def test_the_summary_lists_open_rows_and_what_is_left(data, answered, own, reported):
    run, *_, still = answered
    left, found = facts(run)["outlook"], issues(run)
    flagged = found["action"][still] != "keep"
    assert left["flagged"] == flagged.sum() > (own[1]["action"][still] != "keep").sum()
    assert left["decided"] == ANSWERED
    assert f"Left to look at: {left['look_first']} rows" in reported
    assert f"People looked at {ANSWERED} rows" in reported
    listed = reported.split("not decided yet")[1].split("\n\n")[0].splitlines()[1:]
    assert listed
    assert {int(line.split()[0]) for line in listed} <= set(still.tolist())
    missed = data.wrong[still][(~flagged).to_numpy()].sum()
    assert left["expected_missed"] == pytest.approx(missed, abs=25)


def test_export_uses_the_same_numbers(answered, exported, reported):
    run, *_, still = answered
    names = ("p_error", "label_confidence")
    corrected = pd.read_parquet(run / "corrected.parquet")
    for name in names:
        np.testing.assert_allclose(exported[name][still], corrected[name][still], atol=1e-9)
    assert exported["label"].tolist() == corrected["label"].tolist()


def test_the_next_audit_knows_the_same(answered, second, reported):
    run, _, page, _, still = answered
    said = facts(second)
    assert said["noise_rate"] == pytest.approx(page["noise_rate"], abs=1e-6)
    assert said["noise_rate_interval"] == pytest.approx(page["noise_interval"], abs=1e-6)
    np.testing.assert_allclose(
        issues(second)["p_error"][still], issues(run)["p_error"][still], atol=1e-6
    )
    done = command("report", second)
    assert done.exit_code == 0, done.output
    assert facts(second)["noise_rate"] == said["noise_rate"]
    with open_review(second) as desk:  # what the audit was told is decided here, too
        assert desk.state()["decided"] == ANSWERED
        assert desk.page(Wanted(decided=False), "rank", 0, 1)["total"] == ROWS - ANSWERED


def test_a_page_opened_after_the_report_says_the_same(answered, reported):
    run, _, page, p_error, _ = answered
    with open_review(run) as desk:
        assert desk.state()["estimate"] == page
        lines = desk.page(Wanted(), "row", 0, ROWS)["rows"]
    assert np.array([line["p_error"] for line in lines]) == pytest.approx(p_error, abs=1e-9)
