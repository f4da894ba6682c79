"""Hand-computed values: z = (2, 1, -0.5), given label 0 or 2."""

import numpy as np
import pytest

from labelclean.evidence import dynamics, mixture, neighbours, probabilities
from labelclean.evidence.ranking import most_suspect_first

P = np.array([[0.6896720861, 0.2537161816, 0.0566117322]] * 2)
LABEL = np.array([0, 2])


def test_scores_of_confident_learning():
    np.testing.assert_allclose(
        1 - probabilities.self_confidence(LABEL, P), [0.6896720861, 0.0566117322], atol=1e-9
    )
    np.testing.assert_allclose(
        1 - probabilities.normalised_margin(LABEL, P), [0.7179779522, 0.1834698231], atol=1e-9
    )
    np.testing.assert_allclose(
        1 - probabilities.confidence_weighted_entropy(LABEL, P),
        [0.6908366219, 0.2100707932],
        atol=1e-9,
    )


def test_forward_corrected_posterior():
    T = np.full((3, 3), 0.2) + 0.4 * np.eye(3)
    expected = 1 - P[0, LABEL] * 0.6 / (0.2 + 0.4 * P[0, LABEL])
    np.testing.assert_allclose(probabilities.forward_corrected(LABEL, P, T), expected, atol=1e-12)
    np.testing.assert_allclose(probabilities.forward_corrected(LABEL, P, np.eye(3)), 0, atol=1e-12)


def test_forgetting_counts_loss_of_a_learned_label():
    predicted = np.array([[0, 0, 1], [1, 0, 1], [0, 0, -1], [1, 0, 1]], dtype=np.int32)
    # Row 0: two of four epochs wrong, two events; row 1: never; row 2: never learned, 3 epochs.
    np.testing.assert_allclose(
        dynamics.forgetting(predicted, np.zeros(3, dtype=np.int64)),
        [(2 + 0.5 * 2) / 6, 0, 3 / 4.5],
    )


def test_one_hump_is_not_split():
    values = np.random.default_rng(0).standard_normal(500)
    assert mixture.two_component_mixture(values).max() <= 0.5
    two = np.concatenate([values, values[:100] + 12])
    assert mixture.two_component_mixture(two)[500:].min() > 0.9


def test_neighbours_match_a_slow_search():
    features = np.random.default_rng(3).standard_normal((80, 5))
    rows, similar = neighbours.nearest_rows(features, 4)
    unit = neighbours.unit_rows(features)
    for i in range(80):
        likeness = unit @ unit[i]
        likeness[i] = -np.inf
        np.testing.assert_array_equal(rows[i], np.argsort(-likeness)[:4])
        np.testing.assert_allclose(similar[i], np.sort(likeness)[::-1][:4], atol=1e-6)


def test_neighbours_in_small_blocks_are_the_same(monkeypatch):
    features = np.random.default_rng(4).standard_normal((60, 6))
    whole = neighbours.nearest_rows(features, 5)[0]
    monkeypatch.setattr(neighbours, "_BLOCK_NUMBERS", 60 * 7)
    np.testing.assert_array_equal(neighbours.nearest_rows(features, 5)[0], whole)
    some = np.array([31, 2, 59])
    np.testing.assert_array_equal(neighbours.nearest_rows(features, 5, some)[0], whole[some])


def test_a_single_row_has_no_neighbours():
    assert neighbours.disagreement(np.array([0]), np.ones((1, 3))).tolist() == [0.0]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_ranking_breaks_ties_by_row_and_puts_unknown_last(kind):
    values = np.array([0.0, 2.5, np.nan, -0.0, 2.5, -np.inf, np.inf, -3.0], dtype=kind)
    assert most_suspect_first(values).tolist() == [6, 1, 4, 0, 3, 7, 2, 5]


def test_both_ways_to_sort_agree():
    values = np.random.default_rng(0).standard_normal(5000).astype(np.float32).round(2)
    np.testing.assert_array_equal(
        most_suspect_first(values), most_suspect_first(values.astype(np.float64))
    )
