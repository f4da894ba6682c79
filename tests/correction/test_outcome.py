"""What leaves a run: labels and rows under every policy, and people above all of them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from labelclean.correction.decisions import Decision
from labelclean.correction.outcome import ExportPolicy, Findings, Outcome, apply_policy
from labelclean.errors import ConfigError, OutputError
from small_manifests import manifest_of

GIVEN = ["ant", "ant", "bee", "bee", "cat", "cat", "ant", "bee"]
NAN = np.nan
#        row, suggested, action, p_error, p_suggested; row 7 belongs to a split that is not audited
FOUND = [
    (3, 0, "relabel", 0.98, 0.97),
    (0, 2, "relabel", 0.90, 0.60),
    (1, 1, "review", 0.70, 0.55),
    (2, 1, "review", 0.60, 0.40),  # suspect, but no other label fits better
    (4, 2, "drop", 0.95, 0.05),
    (5, 2, "keep", 0.01, 0.99),
    (6, 0, "unreadable", NAN, NAN),
]


def findings(lines=FOUND) -> Findings:
    row, suggested, action, p_error, p_suggested = zip(*lines, strict=True)
    return Findings(
        np.array(row), np.array(suggested), np.array(action, dtype=object),
        np.array(p_error), np.array(p_suggested),
    )  # fmt: skip


def outcome(policy=None, least=None, people=None, drop=()) -> Outcome:
    choice = ExportPolicy(policy, least, people or {}, tuple(drop))
    beside = {
        # rows 0, 1 and 5 show one picture, 3 and 7 another one, which is also in a test split
        "kind": np.array(["fine"] * 4 + ["outlier", "fine", None], dtype=object),
        "duplicate_group": np.array([1, 0, 0, -1, -1, 0, -1]),
        "leaks_to": np.array([7, -1, -1, -1, -1, -1, -1]),
    }
    manifest = replace(manifest_of(GIVEN), split=np.array(["train"] * 7 + ["test"], dtype=object))
    return apply_policy(manifest, replace(findings(), beside=beside), choice)


@pytest.mark.parametrize(
    ("drop", "dropped"),
    [
        (["outliers"], [4]),
        (["leaks"], [3]),
        (["duplicates"], [0, 1]),  # row 5 is most surely right
        (["outliers", "duplicates", "leaks"], [0, 1, 3, 4]),
    ],
)
def test_lists_that_are_left_out(drop, dropped):
    found = outcome("keep", drop=drop)
    assert found.dropped.tolist() == dropped
    assert not len(found.moved)
    assert (found.action[dropped] == "drop").all()


def test_people_choose_which_copy_stays():
    people = {5: Decision("drop", None), 1: Decision("confirm", None)}
    assert outcome("keep", None, people, ["duplicates"]).dropped.tolist() == [0, 5]
    with pytest.raises(ConfigError, match=r"'copies' is none of outliers, duplicates, leaks"):
        ExportPolicy(drop=("copies",))
    with pytest.raises(ConfigError, match="says nothing about outliers"):
        apply_policy(manifest_of(GIVEN), findings(), ExportPolicy(drop=("leaks",)))


@pytest.mark.parametrize(
    ("policy", "least", "moved", "dropped"),
    [
        (None, None, {3: "ant", 0: "cat"}, [4]),
        (None, 0.9, {3: "ant"}, [4]),
        ("relabel", None, {3: "ant", 0: "cat", 1: "bee"}, []),
        ("relabel", 0.58, {3: "ant", 0: "cat"}, []),
        ("drop", None, {}, [0, 1, 2, 3, 4, 6]),
        ("drop", 0.9, {}, [0, 3, 4, 6]),  # what cannot be read is flagged whatever is asked
        ("keep", None, {}, []),
    ],
)
def test_policies(policy, least, moved, dropped):
    found = outcome(policy, least)
    names = manifest_of(GIVEN).classes
    assert {int(row): names[found.label[row]] for row in found.moved} == moved
    assert found.dropped.tolist() == dropped


def test_a_proposal_that_was_not_taken_is_still_open():
    assert outcome().action.tolist() == [
        "relabel", "review", "review", "relabel", "drop", "keep", "unreadable", None,
    ]  # fmt: skip
    assert outcome("keep").action[[0, 3, 4, 5]].tolist() == ["review", "review", "review", "keep"]
    assert outcome(least=0.9).action[0] == "review"


def test_confidence_is_about_the_label_that_leaves():
    found, kept = outcome("relabel"), outcome("keep")
    assert found.confidence[[0, 1, 3]].tolist() == [0.6, 0.55, 0.97]
    assert kept.confidence[[0, 1, 3]] == pytest.approx([0.1, 0.3, 0.02])
    for one in (found, kept):
        assert np.isnan(one.confidence[[6, 7]]).all()
        assert one.p_error[[0, 3]].tolist() == [0.9, 0.98]


@pytest.mark.parametrize("policy", [None, "relabel", "drop", "keep"])
def test_people_stand_above_every_policy(policy):
    people = {
        0: Decision("confirm", None),
        1: Decision("relabel", 2),
        3: Decision("unsure", None),
        5: Decision("none_of_these", None),
        7: Decision("relabel", 0),  # of a split that was not audited: they looked all the same
    }
    found = outcome(policy, people=people)
    assert found.label[list(people)].tolist() == [0, 2, 1, 2, 0]
    assert found.kept[list(people)].tolist() == [True, True, True, False, True]
    assert found.action[list(people)].tolist() == ["keep", "relabel", "review", "drop", "relabel"]
    assert found.confidence[[0, 1, 7]].tolist() == [1.0, 1.0, 1.0]
    assert found.confidence[3] == pytest.approx(0.02)  # the given label, not the suggested one


def test_rows_that_people_left_out_of_the_audit_are_never_relabelled():
    lines = [*FOUND[:-1], (6, 1, "drop", NAN, NAN)]
    manifest = manifest_of(GIVEN)
    for policy, out in ((None, True), ("relabel", False), ("drop", True), ("keep", False)):
        found = apply_policy(manifest, findings(lines), ExportPolicy(policy))
        assert found.label[6] == 0
        assert found.kept[6] != out


def test_the_manifest_that_leaves():
    found = outcome("drop")
    left = found.corrected(evidence=False)
    assert left.sample_id.tolist() == ["5", "7"]
    assert left.table.column_names == ["label"]
    told = outcome("relabel").corrected(evidence=True)
    assert told.table.column_names == [
        "label", "label_given", "label_action", "label_confidence", "p_error",
    ]  # fmt: skip
    assert told.table["label"].to_pylist() == [
        "cat",
        "bee",
        "bee",
        "ant",
        "cat",
        "cat",
        "ant",
        "bee",
    ]
    assert told.table["label_given"].to_pylist() == GIVEN
    assert told.table["label_confidence"].to_pylist()[6:] == [None, None]


def test_columns_of_an_earlier_run_do_not_leave():
    manifest = manifest_of(GIVEN)
    table = manifest.table.append_column("p_error", pa.array([0.5] * 8))
    found = apply_policy(replace(manifest, table=table), findings(), ExportPolicy())
    assert found.corrected(evidence=False).table.column_names == ["label"]
    assert found.corrected(evidence=True).table["p_error"].to_pylist()[0] == 0.9


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(ConfigError, match="none of relabel, drop, keep"):
        ExportPolicy("burn")
    with pytest.raises(ConfigError, match="0 to 1"):
        ExportPolicy("drop", 1.2)
    with pytest.raises(ConfigError, match="no meaning"):
        ExportPolicy("keep", 0.5)
    everything = {row: Decision("drop", None) for row in range(8)}
    with pytest.raises(OutputError, match="every row would be left out"):
        outcome(people=everything).corrected(evidence=False)
