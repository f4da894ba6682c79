"""What a person's decision means: for the label, the data, the noise, and who vouches."""

import numpy as np
import pyarrow as pa
import pytest

from labelclean.correction.decisions import (
    DECISIONS,
    Decision,
    History,
    believe,
    check_decision,
    class_codes,
    left_out,
    meaning,
    meanings,
)
from labelclean.data.manifest import Manifest
from small_manifests import manifest_of

PEOPLE = {
    0: Decision("confirm", None),
    1: Decision("relabel", 2),
    2: Decision("drop", None),
    3: Decision("unsure", None),
    4: Decision("none_of_these", None),
}
GIVEN = ["ant", "ant", "bee", "bee", "cat", "cat"]


@pytest.fixture
def manifest() -> Manifest:
    return manifest_of(GIVEN, verified=[False, False, False, False, False, True])


@pytest.mark.parametrize(
    ("what", "label", "meant"),
    [
        # label, vouched, kept, wrong, action
        ("confirm", None, (1, True, True, False, "keep")),
        ("relabel", 2, (2, True, True, True, "relabel")),
        ("relabel", 1, (1, True, True, False, "keep")),  # the given label, given once more
        ("relabel", 0, (0, True, True, True, "relabel")),  # class 0 is a label, not nothing
        ("unsure", None, (1, False, True, None, "review")),
        ("none_of_these", None, (1, False, False, True, "drop")),
        ("drop", None, (1, False, False, None, "drop")),
    ],
)
def test_each_decision_about_a_row_of_class_1(what, label, meant):
    found = meaning(Decision(what, label), 1)
    assert (found.label, found.vouched, found.kept, found.wrong, found.action) == meant
    assert found.reason.startswith("a person ")


def test_every_decision_has_a_meaning_of_its_own():
    made = [Decision(what, 0 if what == "relabel" else None) for what in DECISIONS]
    found = [meaning(one, 1) for one in made if one.what != "undo"]
    assert len({one.reason for one in found}) == len(found) == len(DECISIONS) - 1


def test_meanings_are_about_the_given_labels(manifest):
    found = meanings(manifest, PEOPLE)
    assert {row: one.label for row, one in found.items()} == {0: 0, 1: 2, 2: 1, 3: 1, 4: 2}
    assert {row: one.action for row, one in found.items()} == {
        0: "keep", 1: "relabel", 2: "drop", 3: "review", 4: "drop",
    }  # fmt: skip


def test_what_people_vouch_for_is_believed_and_nothing_else(manifest):
    believed = believe(manifest, PEOPLE)
    assert believed.label_values() == ["ant", "cat", "bee", "bee", "cat", "cat"]
    assert believed.table["label"].to_pylist() == believed.label_values()
    assert believed.verified.tolist() == [True, True, False, False, False, True]
    assert manifest.label_values() == GIVEN  # the input stays as it is
    assert manifest.verified.tolist() == [False] * 5 + [True]
    assert believe(manifest, {}) is manifest


def test_a_label_vouched_for_before_stays_so_whoever_is_unsure(manifest):
    assert believe(manifest, {5: Decision("unsure", None)}).verified[5]


def test_rows_people_want_out(manifest):
    assert np.flatnonzero(left_out(manifest, PEOPLE)).tolist() == [2, 4]
    assert not left_out(manifest, {}).any()


def test_a_later_decision_wins_and_undo_takes_back_the_latest():
    first, second = Decision("confirm", None), Decision("relabel", 1)
    undo = Decision("undo", None)
    history = History([(0, first), (3, first), (0, second)])
    assert history.current == {0: second, 3: first}
    assert history.last() == (0, second)
    history.add(0, undo)
    assert history.current == {0: first, 3: first}
    assert history.last() == (3, first)
    history.add(0, undo)
    history.add(0, undo)  # nothing is left to take back
    assert history.current == {3: first}
    assert len(history.log) == 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"row": 6}, "row 6 is not in 0 to 5"),
        ({"row": True}, "row True"),
        ({"sample_id": "5"}, "row 1 is '1'"),
        ({"decision": "maybe"}, "none of confirm"),
        ({"label": "dog"}, "'dog' is none of 'ant'"),
        ({"label": None}, "label None"),
        ({"label": True}, "label True"),
    ],
)
def test_what_is_no_decision_is_refused(manifest, change, words):
    entry = {"row": 1, "sample_id": "1", "decision": "relabel", "label": "cat"}
    codes = class_codes(manifest)
    assert check_decision(entry, manifest, codes) == (1, Decision("relabel", 2))
    with pytest.raises(ValueError, match=words):
        check_decision(entry | change, manifest, codes)


def test_a_label_is_read_for_relabel_alone(manifest):
    entry = {"row": 1, "sample_id": "1", "decision": "confirm", "label": "dog"}
    assert check_decision(entry, manifest, class_codes(manifest)) == (1, Decision("confirm", None))


def test_integer_classes_are_named_as_text_or_number():
    manifest = manifest_of([7, 9, 7])
    assert manifest.table["label"].type == pa.int64()
    for label in (9, "9"):
        entry = {"row": 0, "sample_id": "0", "decision": "relabel", "label": label}
        assert check_decision(entry, manifest, class_codes(manifest)) == (0, Decision("relabel", 1))
