"""Two audits of the same data: what changed, by sample, whatever the order of the rows."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from labelclean.correction.result import Audit
from labelclean.errors import DataError
from labelclean.runs.compare import Earlier, compare_runs, read_earlier
from planted import NAMES, PLANTED, audit_probs, command, plant
from small_manifests import manifest_of

LABELS = ["ant", "bee", "cat", "ant", "bee", "cat", "ant"]


def now(lines: dict[int, tuple[str, int]]) -> Audit:
    """Give an audit of some rows: row to its action and suggested class, most suspect first."""
    nothing = np.full(len(lines), np.nan)
    return Audit(
        manifest=manifest_of(LABELS),
        row=np.array(list(lines)),
        suggested=np.array([code for _, code in lines.values()]),
        action=np.array([action for action, _ in lines.values()], dtype=object),
        p_error=nothing, suspicion=nothing, p_suggested=nothing, signals={},
        reason=np.full(len(lines), "", dtype=object),
        noise=None, noise_rate=0.25, noise_interval=(0.2, 0.3), diagnosis=(),
    )  # fmt: skip


BEFORE = Earlier(
    Path("old"),
    0.125,
    {
        "0": ("relabel", "bee"),
        "1": ("review", "bee"),
        "2": ("keep", "cat"),
        "3": ("drop", "ant"),
        "4": ("unreadable", "bee"),
        "9": ("review", "ant"),
    },
)


def test_what_changed():
    audit = now(
        {
            6: ("review", 0),  # was not there
            4: ("relabel", 0),  # could not be read
            0: ("relabel", 2),  # another suggestion
            2: ("review", 2),  # newly flagged
            3: ("review", 0),  # flagged as before, the same suggestion
            1: ("keep", 1),  # no longer
        }
    )
    assert compare_runs(BEFORE, audit) == {
        "run": "old",
        "noise_rate_before": 0.125,
        "noise_rate_after": 0.25,
        "newly_flagged": ["4", "2"],  # most suspect first
        "no_longer_flagged": ["1"],
        "changed_suggestions": ["0"],
        "only_before": ["9"],
        "only_after": ["6"],
    }


def test_a_row_that_cannot_be_read_any_more_is_not_flagged():
    found = compare_runs(BEFORE, now({0: ("unreadable", 0)}))
    assert found["no_longer_flagged"] == ["0"]
    assert found["changed_suggestions"] == []


def test_runs_that_share_nothing_are_refused():
    with pytest.raises(DataError, match="old and this run share no sample_id"):
        compare_runs(BEFORE, now({5: ("keep", 2)}))


@pytest.mark.usefixtures("plain_figures")
def test_an_earlier_run_is_read_from_its_folder(tmp_path):
    """The second audit is of the same samples in another order, every second one put right."""
    data = plant(tmp_path / "data", rows=200)
    first = audit_probs(data, tmp_path / "first")
    earlier = read_earlier(first)
    issues = pd.read_parquet(first / "issues.parquet").set_index("sample_id")
    assert len(earlier.found) == 200
    assert earlier.found["s7"] == tuple(issues.loc["s7", ["action", "label_suggested"]])
    assert earlier.noise_rate == pytest.approx(PLANTED / 200, abs=0.05)
    table, probs = pd.read_csv(data.table), np.load(data.probs)
    table.loc[:PLANTED:2, "label"] = table.loc[:PLANTED:2, "true_label"]
    order = np.random.default_rng(0).permutation(200)
    table.iloc[order].to_csv(data.table, index=False)
    np.save(data.probs, probs[order])
    flags = ("--pred-probs", data.probs, "--out", tmp_path / "second", "--baseline", first)
    changed = json.loads(command("audit", data.table, *flags, "--json").stdout)["baseline"]
    mended = {f"s{row}" for row in range(0, PLANTED, 2)}
    assert len(mended & set(changed["no_longer_flagged"])) > 0.9 * len(mended)
    assert not set(changed["newly_flagged"]) & mended
    assert changed["only_before"] == changed["only_after"] == []
    assert set(NAMES) >= {label for _, label in earlier.found.values()}


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"run\.json"):
        read_earlier(tmp_path)
