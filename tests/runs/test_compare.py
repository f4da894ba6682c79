"""Two audits of the same data: what changed, row by row, whatever came, left or moved."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from labelclean.errors import DataError
from labelclean.runs.compare import ComparedRow, RunLines, compare_runs, read_earlier
from planted import NAMES, PLANTED, audit_probs, command, plant

CLASSES = frozenset(NAMES)


def line(row, name=None, *, content=None, path=None, given="ant", suggested="ant", flagged=False):
    digest = None if content is None else content.encode().ljust(32, b".")
    name = str(row) if name is None else name
    return ComparedRow(row, name, path, given, suggested, flagged, digest)


def run(name, *lines, of_features=False):
    return RunLines(Path(name), f"digest of {name}", 0.125, CLASSES, of_features, lines)


def test_what_changed():
    before = run(
        "old",
        line(0, "a", suggested="bee", flagged=True),
        line(1, "b", suggested="bee", flagged=True),
        line(2, "c"),
        line(3, "d", flagged=True),
        line(4, "e"),
        line(5, "f", flagged=True),
    )
    after = run(
        "new",
        line(9, "g", flagged=True),  # was not there
        line(3, "a", suggested="cat", flagged=True),  # another suggestion
        line(4, "c", flagged=True),  # newly flagged
        line(5, "d", flagged=True),
        line(0, "b", given="bee"),  # put right
        line(1, "e"),
    )
    found = compare_runs(before, after)
    assert found == {
        "run": "old",
        "matched": {"by": "sample_id", "rows": 5},
        "noise_rate_before": 0.125,
        "noise_rate_after": 0.125,
        "changed_labels": ["b"],
        "newly_flagged": ["c"],
        "no_longer_flagged": ["b"],
        "changed_suggestions": ["a"],
        "only_before": ["f"],
        "only_after": ["g"],
    }


def test_rows_are_matched_by_what_is_in_them_not_by_their_place():
    """A row was dropped in front, two were swapped, one file was renamed; ids are row numbers."""
    before = run("old", *(line(at, content=name, path=name) for at, name in enumerate("abcdef")))
    order = [("c", "c"), ("b", "moved"), ("d", "d"), ("e", "e"), ("f", "f"), ("new", "a")]
    now = [line(at, content=name, path=path) for at, (name, path) in enumerate(order)]
    found = compare_runs(before, run("new", *now))
    # The new picture took the name of the dropped one: the same place in the data, new content.
    assert found["matched"] == {"by": "content, path", "rows": 6}
    found = compare_runs(before, run("new", *now[:5]))
    assert found["matched"] == {"by": "content", "rows": 5}
    assert (found["only_before"], found["only_after"]) == (["0"], [])
    assert found["newly_flagged"] == found["changed_labels"] == []


def test_of_equal_pictures_the_one_of_the_same_name_or_label_is_the_same():
    before = run(
        "old",
        line(0, content="x", path="one", given="ant", flagged=True),
        line(1, content="x", path="two", given="bee"),
        line(2, content="x", path="three", given="cat"),
    )
    after = run(
        "new",
        line(0, content="x", path="two", given="bee"),
        line(1, content="x", path="new name", given="cat"),
        line(2, content="x", path="one", given="ant", flagged=True),
    )
    found = compare_runs(before, after)
    assert found["matched"]["rows"] == 3
    changed = ("changed_labels", "newly_flagged", "no_longer_flagged", "only_before", "only_after")
    assert [found[name] for name in changed] == [[]] * 5


def test_other_pictures_under_the_same_names_are_refused():
    before = run("old", line(0, content="a", path="0.png"), line(1, content="b", path="1.png"))
    after = run("new", line(0, content="c", path="0.png"), line(1, content="d", path="1.png"))
    with pytest.raises(DataError, match="no picture is the same"):
        compare_runs(before, after)


def test_features_computed_anew_leave_the_names_to_tell():
    before = run("old", line(0, "a", content="1"), line(1, "b", content="2"), of_features=True)
    after = run("new", line(0, "b", content="3"), line(1, "a", content="4"), of_features=True)
    assert compare_runs(before, after)["matched"] == {"by": "sample_id", "rows": 2}


def test_row_numbers_are_no_names():
    before, after = run("old", line(0), line(1)), run("new", line(0), line(1))
    with pytest.raises(DataError, match="add a column sample_id"):
        compare_runs(before, after)


@pytest.mark.usefixtures("plain_figures")
def test_an_earlier_run_is_read_from_its_folder(tmp_path):
    """The second audit is of the same samples in another order, every second one put right."""
    data = plant(tmp_path / "data", rows=200)
    first = audit_probs(data, tmp_path / "first")
    earlier = read_earlier(first)
    issues = pd.read_parquet(first / "issues.parquet").set_index("sample_id")
    assert len(earlier.lines) == 200
    seven = next(one for one in earlier.lines if one.name == "s7")
    assert seven.suggested == issues.loc["s7", "label_suggested"]
    assert seven.flagged == (issues.loc["s7", "action"] != "keep")
    table, probs = pd.read_csv(data.table), np.load(data.probs)
    table.loc[: PLANTED - 1 : 2, "label"] = table.loc[: PLANTED - 1 : 2, "true_label"]
    order = np.random.default_rng(0).permutation(200)[:-20]
    table.iloc[order].to_csv(data.table, index=False)
    np.save(data.probs, probs[order])
    flags = ("--pred-probs", data.probs, "--out", tmp_path / "second", "--baseline", first)
    changed = json.loads(command("audit", data.table, *flags, "--json").stdout)["baseline"]
    mended = {f"s{row}" for row in range(0, PLANTED, 2) if row in order}
    assert len(mended & set(changed["no_longer_flagged"])) > 0.9 * len(mended)
    assert not set(changed["newly_flagged"]) & mended
    assert {"s" + str(row) for row in range(200) if row not in order} == set(changed["only_before"])
    assert changed["only_after"] == []
    assert set(changed["changed_labels"]) == mended
    # The names agree, the classes do not: refused before anything is done.
    table["label"] = table["label"].str.upper()
    table.to_csv(data.table, index=False)
    done = command("audit", data.table, *flags, "--overwrite")
    assert (done.exit_code, "share no class" in done.stderr) == (3, True)
    assert read_earlier(tmp_path / "second").noise_rate is not None


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"run\.json"):
        read_earlier(tmp_path)
