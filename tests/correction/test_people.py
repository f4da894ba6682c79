"""People's decisions put over a judgement: believed first, then said; the noise counts them."""

from dataclasses import replace

import numpy as np
import pytest
from simulated_arrays import simulated

from labelclean.correction.decisions import Decision
from labelclean.correction.judging import judge_evidence
from labelclean.correction.people import judge_with_decisions
from labelclean.correction.policy import Policy
from labelclean.correction.result import Audit
from labelclean.evidence.value import Evidence
from small_manifests import manifest_of

NAMES = np.array(["ant", "bee", "cat", "dog"])
LABEL, PROBS, TRUE = simulated(600, 4, 0.15)
UNREADABLE, LEFT_OUT = 590, 591
SEEN = np.arange(590)
WRONG = np.flatnonzero((LABEL != TRUE)[:590])
RIGHT = np.flatnonzero((LABEL == TRUE)[:590])


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    rows = np.concatenate([SEEN, np.arange(592, 600)])
    return Evidence(
        row=rows,
        probs=PROBS[rows].astype(np.float32),
        fusion=None,
        signals={"p_given": PROBS[rows, LABEL[rows]]},
        unreadable={UNREADABLE: "damaged"},
        left_out=np.array([LEFT_OUT]),
    )


@pytest.fixture(scope="module")
def manifest():
    return manifest_of(NAMES[LABEL].tolist())


@pytest.fixture(scope="module")
def alone(manifest, evidence) -> Audit:
    return judge_with_decisions(manifest, evidence, {}, Policy())


def decided(manifest, evidence, people) -> Audit:
    return judge_with_decisions(manifest, replace(evidence, people=people), {}, Policy())


def line(audit: Audit, row: int) -> dict[str, object]:
    (at,) = np.flatnonzero(audit.row == row)
    names = ("suggested", "action", "p_error", "suspicion", "p_suggested", "reason")
    return {"rank": at} | {name: getattr(audit, name)[at] for name in names}


def test_without_decisions_the_judge_has_the_last_word(manifest, evidence, alone):
    plain = judge_evidence(manifest, evidence, {}, policy=Policy())
    assert np.array_equal(alone.row, plain.row)
    assert np.array_equal(alone.action, plain.action)
    assert alone.noise_rate == plain.noise_rate


def test_a_label_people_gave_was_wrong_for_sure(manifest, evidence, alone):
    kept = next(int(row) for row in RIGHT if line(alone, row)["action"] == "keep")
    other = int((LABEL[kept] + 1) % 4)
    found = decided(manifest, evidence, {kept: Decision("relabel", other)})
    assert line(found, kept) == {
        "rank": 0, "suggested": other, "action": "relabel", "p_error": 1.0, "suspicion": 1.0,
        "p_suggested": 1.0, "reason": "a person gave this label",
    }  # fmt: skip
    assert found.corrected()[kept] == other
    assert found.manifest.label[kept] == LABEL[kept]  # label_given is what the user gave


def test_a_confirmed_label_is_right_whatever_the_judge_thinks(manifest, evidence, alone):
    suspect = int(alone.row[0])
    assert alone.action[0] != "keep"
    found = decided(manifest, evidence, {suspect: Decision("confirm", None)})
    told = line(found, suspect)
    assert (told["action"], told["p_error"]) == ("keep", 0.0)
    assert told["suggested"] == LABEL[suspect]
    assert told["rank"] > 500
    assert found.corrected()[suspect] == LABEL[suspect]


def test_unsure_sends_to_review_and_says_nothing_about_the_label(manifest, evidence, alone):
    suspect = int(alone.row[0])
    found = decided(manifest, evidence, {suspect: Decision("unsure", None)})
    told, before = line(found, suspect), line(alone, suspect)
    assert (told["action"], told["suggested"]) == ("review", LABEL[suspect])
    assert told["p_error"] == before["p_error"]
    assert found.noise_rate == alone.noise_rate


def test_dropped_rows_say_nothing_about_noise_and_none_of_these_does(manifest, evidence, alone):
    kept = int(alone.row[400])
    for what, error in (("drop", line(alone, kept)["p_error"]), ("none_of_these", 1.0)):
        found = decided(manifest, evidence, {kept: Decision(what, None)})
        assert line(found, kept)["action"] == "drop"
        assert line(found, kept)["p_error"] == pytest.approx(error)
        assert found.corrected()[kept] == LABEL[kept]


def test_rows_nobody_observed(manifest, evidence):
    people = {UNREADABLE: Decision("confirm", None), LEFT_OUT: Decision("none_of_these", None)}
    found = decided(manifest, evidence, people)
    assert line(found, UNREADABLE)["action"] == "unreadable"
    assert line(found, UNREADABLE)["reason"] == "damaged"
    assert np.isnan(line(found, UNREADABLE)["p_error"])
    assert line(found, LEFT_OUT)["rank"] == 0
    assert line(found, LEFT_OUT)["p_error"] == 1.0


def test_the_noise_rate_counts_what_people_found(manifest, evidence, alone):
    people = {int(row): Decision("relabel", int(TRUE[row])) for row in WRONG}
    people |= {int(row): Decision("confirm", None) for row in RIGHT}
    found = decided(manifest, evidence, people)
    known = np.count_nonzero(found.p_error == 1.0)
    assert known == len(WRONG)
    assert found.noise_rate == pytest.approx(np.nanmean(found.p_error), abs=0.002)
    assert found.noise_rate == pytest.approx(len(WRONG) / 598, abs=0.01)
    low, high = found.noise_interval
    assert 0 <= low <= found.noise_rate <= high <= 1
    assert f"{len(WRONG)} labels are wrong, {len(RIGHT)} right." in found.diagnosis[1]
    assert set(found.row[: len(WRONG)]) == set(WRONG)


def test_every_column_moves_with_its_row(manifest, evidence, alone):
    people = {int(row): Decision("relabel", int(TRUE[row])) for row in WRONG[::3]}
    found = decided(manifest, evidence, people)
    assert sorted(found.row) == sorted(alone.row)
    seen = ~np.isnan(found.signals["p_given"])
    rows = found.row[seen]
    assert np.allclose(found.signals["p_given"][seen], PROBS[rows, LABEL[rows]])
    for row, made in people.items():
        assert line(found, row)["suggested"] == made.label
