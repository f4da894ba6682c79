"""The labels of a finished run, and what people decided since: label, place in the data, trust."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from finished_runs import call, write_features
from labelclean.runs.again import judge_again
from labelclean.runs.reading import StoredRun, load_run, open_audited
from labelclean.runs.relabelled import read_relabelled

pytestmark = pytest.mark.usefixtures("plain_figures")


@pytest.fixture(scope="module")
def run(tmp_path_factory, plain_figures) -> StoredRun:
    folder = tmp_path_factory.mktemp("run")
    table = write_features(folder / "digits.npz")
    flags = ("--epochs", 2, "--loss", "cce", "--set", "correction.mode=relabel", "--no-cache")
    call("audit", table, "--out", folder / "run", *flags)
    return load_run(folder / "run")


@pytest.fixture(scope="module")
def corrected(run) -> pd.DataFrame:
    table = pd.read_parquet(run.folder / "corrected.parquet")
    return table.rename(columns={run.facts["columns"]["label"]: "label"})


def decide(path: Path, *lines: tuple[int, str, str | None]) -> Path:
    entries = (
        {"row": int(row), "sample_id": str(row), "decision": what, "label": label, "time": ""}
        for row, what, label in lines
    )
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def test_without_decisions_it_is_what_the_run_made(run, corrected):
    found = read_relabelled(run)
    assert found.given.tolist() == corrected["label_given"].tolist()
    assert found.manifest.label_values() == corrected["label"].tolist()
    assert np.array_equal(found.kept, (corrected["label_action"] != "drop").to_numpy())
    assert np.allclose(found.trust, corrected["label_confidence"])
    assert found.decided == 0


def test_people_stand_above_the_run(run, corrected, tmp_path):
    moved = np.flatnonzero(corrected["label_action"] == "relabel")
    taken, back, unsure, gone, alien = moved[:5].tolist()
    given = corrected["label_given"]
    third = ({0, 1, 2} - {given[taken], corrected["label"][taken]}).pop()
    people = decide(
        tmp_path / "d.jsonl",
        (taken, "relabel", str(third)),
        (back, "confirm", None),
        (unsure, "unsure", None),
        (gone, "drop", None),
        (alien, "none_of_these", None),
    )
    found = read_relabelled(run, decisions=people)
    label = found.manifest.label_values()
    assert label[taken] == third
    assert [label[row] for row in (back, unsure, gone, alien)] == [
        given[row] for row in (back, unsure, gone, alien)
    ]
    assert found.kept[[taken, back, unsure]].all()
    assert not found.kept[[gone, alien]].any()
    assert found.manifest.verified[[taken, back, unsure]].tolist() == [True, True, False]
    assert found.trust[[taken, back]].tolist() == [1.0, 1.0]
    assert found.decided == 5


def test_trust_is_about_the_label_that_counts(run, corrected, tmp_path):
    """Unsure puts the given label back: the run was sure of the other one, not of this."""
    row = int(np.flatnonzero(corrected["label_action"] == "relabel")[0])
    assert corrected["label_confidence"][row] > 0.5
    found = read_relabelled(run, decisions=decide(tmp_path / "d.jsonl", (row, "unsure", None)))
    assert found.trust[row] == pytest.approx(1 - corrected["p_error"][row], abs=1e-6)


def test_what_people_found_tells_about_rows_they_did_not_look_at(run, corrected, tmp_path):
    """Forty answers that contradict the run: its suggestions are trusted less everywhere."""
    moved = np.flatnonzero(corrected["label_action"] == "relabel")
    looked = moved[: len(moved) // 2].tolist() + list(range(100, 120))
    people = decide(tmp_path / "d.jsonl", *((row, "confirm", None) for row in looked))
    found = read_relabelled(run, decisions=people)
    again, _ = judge_again(open_audited(run.folder), people)
    trust = np.where(again.action == "relabel", again.p_suggested, 1 - again.p_error)
    assert np.allclose(found.trust[again.row], trust)
    assert found.manifest.label.tolist() == again.corrected().tolist()
    still = np.setdiff1d(np.arange(len(corrected)), looked)
    before = read_relabelled(run).trust[still]
    assert np.abs(found.trust[still] - before).max() > 0.01
