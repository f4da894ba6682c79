"""What answers tell: bounds that hold, whatever rows people chose to look at."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelclean.correction.estimate import Answers, estimate
from labelclean.correction.sample import (
    ASKED,
    BLOCK,
    BORDER,
    KEPT,
    KNOWN,
    NOWHERE,
    RELABELLED,
    make_plan,
)

PRECISION = 0.95


def world(seed, rows=1500, bias=0.0):
    """Rows with p_error, strata by its cuts, and a truth that p_error misjudges by `bias`."""
    rng = np.random.default_rng(seed)
    p = np.sort(rng.beta(0.25, 2.0, rows))[::-1]
    odds = np.log(p / (1 - p) + 1e-9) + bias
    wrong = rng.random(rows) < 1 / (1 + np.exp(-odds))
    stratum = np.where(p > 0.7, RELABELLED, np.where(p > 0.3, ASKED, KEPT)).astype(np.int8)
    right = wrong & (rng.random(rows) < 0.97)
    return p, stratum, wrong.astype(float), right.astype(float)


def told(answered, wrong, right):
    return Answers(answered, np.where(answered, wrong, np.nan), np.where(answered, right, np.nan))


def plan_of(p, stratum, seed=0):
    return make_plan(stratum, p, 1 - 0.1 * p, precision=PRECISION, seed=seed)


def answered_in_order(plan, count):
    answered = np.zeros(len(plan.order), bool)
    answered[plan.order[:count]] = True
    return answered


def test_a_block_of_answers_completes_a_block_of_the_sample():
    p, stratum, *_ = world(0)
    plan = plan_of(p, stratum)
    assert plan.share.sum() == BLOCK - BORDER
    assert sorted(plan.order) == list(range(len(p)))
    for blocks in range(1, 5):
        assert plan.complete(answered_in_order(plan, blocks * BLOCK)) >= blocks
        first = plan.order[: blocks * BLOCK]
        for name in (KEPT, ASKED, RELABELLED):
            asked = min(blocks * plan.share[name], plan.size[name])
            assert (stratum[first] == name).sum() >= asked
    missing = answered_in_order(plan, 5 * BLOCK)
    missing[np.flatnonzero(plan.block == 2)[0]] = False
    assert plan.complete(missing) == 2
    assert plan.complete(np.ones(len(p), bool)) == plan.block.max() + 1


def test_doubtful_cases_come_early():
    p, stratum, *_ = world(0)
    plan = make_plan(stratum, p, np.full(len(p), np.nan), precision=PRECISION, seed=0)
    place = np.empty(len(p), int)
    place[plan.order] = np.arange(len(p))
    edge = np.argsort(np.abs(p - p[stratum == ASKED].min()))[:BORDER]
    assert (place[edge] < BLOCK).all()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=80),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_any_mixture_of_strata_gives_bounds(codes, seed, known):
    rng = np.random.default_rng(seed)
    stratum = np.array(codes, dtype=np.int8)
    rows = len(stratum)
    p = rng.random(rows) if known else np.full(rows, np.nan)
    plan = plan_of(p, stratum, seed)
    answered = rng.random(rows) < rng.random()
    wrong = rng.choice([0.0, 1.0, np.nan], rows)
    found = estimate(plan, p, told(answered, wrong, 1 - wrong), precision=PRECISION)
    low, high = found.noise_interval
    assert 0 <= low <= found.noise_rate <= high <= 1
    if found.relabel_precision is not None:
        low, high = found.relabel_interval
        assert 0 <= low <= high <= 1
    everything = np.ones(rows, bool)
    sure = np.nan_to_num(wrong)
    found = estimate(plan, p, told(everything, sure, 1 - sure), precision=PRECISION)
    if (stratum != NOWHERE).any():
        share = sure[stratum != NOWHERE].mean()
        assert found.noise_interval == pytest.approx((share, share))
        assert found.noise_rate == pytest.approx(share)
    if (stratum == RELABELLED).any():
        assert found.enough
        assert found.relabel_precision == pytest.approx((1 - sure)[stratum == RELABELLED].mean())


@pytest.mark.parametrize("bias", [-2.0, 0.0, 1.0])
@pytest.mark.parametrize("habit", ["informative", "rank first", "wrong ones first"])
def test_the_truth_lies_inside_as_often_as_promised(bias, habit):
    """200 runs: interval of both numbers holds in 95 %, and the rate is right on average."""
    hits, precise, off = [], [], []
    for seed in range(200):
        p, stratum, wrong, right = world(seed, 800, bias)
        plan = plan_of(p, stratum, seed)
        answered = answered_in_order(plan, 8 * BLOCK)
        if habit == "rank first":
            answered[:150] = True
        elif habit == "wrong ones first":
            answered[wrong == 1] |= np.random.default_rng(seed).random(int(wrong.sum())) < 0.3
        found = estimate(plan, p, told(answered, wrong, right), precision=PRECISION)
        off.append(found.noise_rate - wrong.mean())
        hits.append(found.noise_interval[0] <= wrong.mean() <= found.noise_interval[1])
        share = right[stratum == RELABELLED].mean()
        precise.append(found.relabel_interval[0] <= share <= found.relabel_interval[1])
    # 95 % of 200 with a normal sampling error of 1.5 %.
    assert np.mean(hits) >= 0.92
    assert np.mean(precise) >= 0.92
    assert abs(np.mean(off)) < 4 * np.std(off) / np.sqrt(len(off))


def test_answers_in_rank_order_alone_claim_nothing():
    """The plain share among the most suspect rows would be far off."""
    p, stratum, wrong, right = world(4)
    plan = plan_of(p, stratum)
    answered = np.zeros(len(p), bool)
    top = int((stratum == RELABELLED).sum()) - 5
    answered[:top] = True
    found = estimate(plan, p, told(answered, wrong, right), precision=PRECISION)
    assert wrong[:top].mean() > 3 * wrong.mean()
    assert found.noise_interval[0] == pytest.approx(wrong[:top].sum() / len(p))
    assert found.noise_interval[1] > 0.9
    assert found.relabel_precision is None
    assert not found.enough
    assert "most informative first" in found.message


def test_enough_is_said_in_time_and_seldom_wrongly():
    said = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        stratum = np.full(1000, RELABELLED, np.int8)
        p = np.full(1000, 0.9)
        right = (rng.random(1000) < 0.94).astype(float)  # not quite what was promised
        plan = plan_of(p, stratum, seed)
        for count in (80, 160, 320, 640):
            answers = told(answered_in_order(plan, count), right, right)
            found = estimate(plan, p, answers, precision=PRECISION)
            if found.enough:
                break
        short = right.mean() < PRECISION
        said += found.enough and "at least" in found.message and short
    assert said / 80 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 80)
    perfect = np.ones(1000)
    counts = [
        count
        for count in range(BLOCK, 200, BLOCK)
        if estimate(
            plan, p, told(answered_in_order(plan, count), perfect, perfect), precision=PRECISION
        ).enough
    ]
    assert counts[0] <= 100
    assert counts == list(range(counts[0], 200, BLOCK))


def test_too_many_wrong_relabels_are_noticed():
    p, stratum, wrong, _ = world(5)
    plan = plan_of(p, stratum)
    right = np.zeros(len(p))
    found = estimate(plan, p, told(np.ones(len(p), bool), wrong, right), precision=PRECISION)
    assert found.enough
    assert found.relabel_precision == 0
    assert "fewer than 95%" in found.message


def test_rows_decided_before_are_known_and_not_sampled():
    p, stratum, wrong, right = world(6)
    stratum = np.where(np.arange(len(p)) < 300, KNOWN, stratum).astype(np.int8)
    plan = plan_of(p, stratum)
    assert (stratum[plan.order[:200]] != KNOWN).all()
    answered = answered_in_order(plan, 6 * BLOCK) | (stratum == KNOWN)
    found = estimate(plan, p, told(answered, wrong, right), precision=PRECISION)
    assert found.noise_interval[0] >= wrong[:300].sum() / len(p)
    assert found.noise_interval[0] <= wrong.mean() <= found.noise_interval[1]


def test_a_person_who_cannot_tell_widens_the_bounds():
    p, stratum, wrong, right = world(7)
    plan = plan_of(p, stratum)
    answers = told(answered_in_order(plan, 6 * BLOCK), wrong, right)
    unsure = replace(answers, wrong=answers.wrong.copy(), right=answers.right.copy())
    unsure.wrong[plan.order[:30]] = np.nan
    unsure.right[plan.order[:30]] = np.nan
    sharp, wide = (
        estimate(plan, p, said, precision=PRECISION).noise_interval for said in (answers, unsure)
    )
    assert wide[0] <= sharp[0]
    assert wide[1] > sharp[1]


def test_without_relabels_the_rate_decides():
    p, stratum, wrong, right = world(8, 400)
    stratum = np.where(stratum == RELABELLED, ASKED, stratum).astype(np.int8)
    plan = plan_of(p, stratum)
    answers = told(answered_in_order(plan, 2 * BLOCK), wrong, right)
    few = estimate(plan, p, answers, precision=PRECISION)
    assert (few.enough, few.relabel_precision, few.relabel_interval) == (False, None, None)
    answers = told(answered_in_order(plan, 390), wrong, right)
    assert estimate(plan, p, answers, precision=PRECISION).enough


def test_what_was_found_outside_the_sample_bounds_the_precision_of_relabels():
    """Of 100 relabels 20 were sampled and right, two others are known to be wrong."""
    stratum = np.full(100, RELABELLED, np.int8)
    plan = plan_of(np.linspace(0.99, 0.9, 100), stratum)
    answered = answered_in_order(plan, BLOCK)
    others = plan.order[-2:]
    answered[others] = True
    right = np.ones(100)
    right[others] = 0
    found = estimate(plan, np.full(100, 0.95), told(answered, np.ones(100), right), precision=0.95)
    assert found.relabel_interval[1] == 0.98
    assert found.relabel_precision == 0.98
