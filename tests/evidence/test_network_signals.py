"""What a trained network's records say about each label: polarity, order, what is missing."""

from dataclasses import replace

import numpy as np
import pytest
from planted_evidence import EPOCHS, planted_records
from sklearn.metrics import roc_auc_score

from labelclean.evidence.network_signals import network_signals
from labelclean.records.records import Records

NAMES = {
    "mean_p", "converged_p", "average_margin", "wrong_events", "class_mixture", "tau", "target",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(NAMES))
def test_higher_is_more_suspect(name):
    records, wrong = planted_records()
    signals = network_signals(records)
    assert set(signals) == NAMES
    assert roc_auc_score(wrong, signals[name]) > 0.8


def test_early_epochs_do_not_count_in_means():
    records, _ = planted_records()
    begun = EPOCHS // 3
    margin, p_given = records.margin.copy(), records.p_given.copy()
    margin[:begun], p_given[:begun] = 99.0, 0.0
    changed = network_signals(replace(records, margin=margin, p_given=p_given))
    for name, values in network_signals(records).items():
        np.testing.assert_array_equal(changed[name], values)
    margin[begun] = 99.0
    later = network_signals(replace(records, margin=margin))
    assert (later["average_margin"] < changed["average_margin"]).all()


def test_wrong_events_are_a_share_of_the_epochs_a_row_was_seen_in():
    label, probs = np.array([0, 1, 1]), np.full((3, 2), 0.5, np.float32)
    predicted = np.array([[0, 0, -1], [0, 1, -1], [1, 0, 0], [0, -1, 1]], np.int32)
    found = network_signals(Records(label, probs, predicted=predicted))
    np.testing.assert_allclose(found["wrong_events"], [1 / 4, 2 / 3, 1 / 2])
    assert set(found) == {"converged_p", "wrong_events"}


def test_the_average_posterior_is_used_where_it_was_recorded():
    label = np.array([0, 1])
    probs = np.array([[0.9, 0.1], [0.2, 0.8]], np.float32)
    mean = np.array([[0.6, 0.4], [0.7, 0.3]], np.float32)
    p_given = np.full((3, 2), 0.5, np.float32)
    plain = Records(label, probs, p_given=p_given)
    np.testing.assert_allclose(network_signals(plain)["mean_p"], [0.5, 0.5])
    found = network_signals(replace(plain, mean_probs=mean))
    np.testing.assert_allclose(found["mean_p"], [0.4, 0.7], atol=1e-6)
    np.testing.assert_allclose(found["converged_p"], [0.1, 0.2], atol=1e-6)


def test_rows_of_a_hard_class_are_not_suspect_for_that():
    """Margins of one class are low throughout; its own two humps still part wrong from right."""
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1, 2], [400, 400, 8])
    wrong = rng.random(len(label)) < 0.2
    margin = np.where(wrong, -4.0, 4.0) + 0.7 * rng.standard_normal(len(label))
    margin[label == 1] -= 8.0
    probs = np.full((len(label), 3), 1 / 3, np.float32)
    records = Records(label, probs, margin=np.tile(margin, (3, 1)).astype(np.float32))
    found = network_signals(records)
    many = label < 2
    assert roc_auc_score(wrong[many], found["class_mixture"][many]) > 0.99
    assert roc_auc_score(wrong[many], found["average_margin"][many]) < 0.9
    assert np.isfinite(found["class_mixture"]).all()
