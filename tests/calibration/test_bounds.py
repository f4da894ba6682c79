"""Exact bounds in finite collections, against sums over all samples."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, hypergeom

from labelclean.calibration.bounds import fewest, more_than, most, plausible_at_most, smallest_proof


def tail_by_counting(rows, marked, drawn, seen):
    """P(at least `seen` marked in the sample), by listing every sample."""
    samples = list(combinations([1] * marked + [0] * (rows - marked), drawn))
    return sum(sum(sample) >= seen for sample in samples) / len(samples)


@pytest.mark.parametrize(("rows", "drawn"), [(6, 3), (7, 2), (8, 4), (5, 5), (6, 0)])
def test_bounds_are_the_counts_no_test_rejects(rows, drawn):
    for tail in (0.025, 0.1, 0.3):
        for seen in range(drawn + 1):
            possible = range(seen, rows - (drawn - seen) + 1)
            kept = [m for m in possible if tail_by_counting(rows, m, drawn, seen) > tail]
            assert fewest(seen, drawn, rows, tail) == min(kept)
            missed = drawn - seen
            kept = [m for m in possible if tail_by_counting(rows, rows - m, drawn, missed) > tail]
            assert most(seen, drawn, rows, tail) == max(kept)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.data())
def test_no_count_is_missed_too_often(rows, data):
    drawn = data.draw(st.integers(0, rows))
    marked = data.draw(st.integers(0, rows))
    tail = data.draw(st.sampled_from([0.025, 0.05, 0.2]))
    chance = hypergeom(rows, marked, drawn)
    too_high = too_low = 0.0
    for seen in range(max(0, drawn - rows + marked), min(drawn, marked) + 1):
        too_high += chance.pmf(seen) * (fewest(seen, drawn, rows, tail) > marked)
        too_low += chance.pmf(seen) * (most(seen, drawn, rows, tail) < marked)
    assert max(too_high, too_low) <= tail + 1e-9


def test_large_collections_give_clopper_and_pearson():
    for seen, drawn in ((0, 50), (3, 80), (40, 60)):
        low = beta.ppf(0.025, seen, drawn - seen + 1) if seen else 0
        assert fewest(seen, drawn, 10**6, 0.025) / 10**6 == pytest.approx(low, abs=2e-3)
        high = beta.ppf(0.975, seen + 1, drawn - seen)
        assert most(seen, drawn, 10**6, 0.025) / 10**6 == pytest.approx(high, abs=2e-3)


def test_proofs_agree_with_the_bounds():
    for rows, drawn in ((30, 12), (100, 100), (57, 3)):
        for seen in range(drawn + 1):
            for share in (0.0, 0.05, 0.2, 0.9, 1.0):
                allowed = int(share * rows + 1e-9)
                proven = most(seen, drawn, rows, 0.05) <= allowed
                assert plausible_at_most(share, seen, drawn, rows, 0.05) == proven
                refuted = fewest(seen, drawn, rows, 0.05) > allowed
                assert more_than(share, seen, drawn, rows, 0.05) == refuted


def test_proofs():
    assert smallest_proof(0.05, 10**6, 0.05) == 59  # 0.95^59 < 0.05 <= 0.95^58
    assert plausible_at_most(0.05, 0, 59, 10**6, 0.05)
    assert not plausible_at_most(0.05, 0, 58, 10**6, 0.05)
    assert plausible_at_most(0.05, 5, 100, 100, 0.05)  # everything was looked at
    assert not plausible_at_most(0.05, 6, 100, 100, 0.05)
    assert more_than(0.05, 6, 100, 100, 0.05)
    assert not more_than(0.05, 5, 100, 100, 0.05)
    assert smallest_proof(0.05, 10, 0.05) == 10
