"""Contract of every suspicion function: polarity, order, finiteness, declared needs."""

from dataclasses import fields, replace

import numpy as np
import pytest
from planted_evidence import EPOCHS, planted_records
from sklearn.metrics import roc_auc_score

from labelclean.errors import DataError
from labelclean.evidence import scorers
from labelclean.records.records import Records

NAMES = sorted(scorers.SCORERS)


@pytest.mark.parametrize("name", NAMES)
def test_higher_is_more_suspect(name):
    records, wrong = planted_records()
    suspicion = scorers.SCORERS[name](records)
    if name == "duplicates":  # of two twins that differ at least one is wrong, not each of them
        pair = suspicion.reshape(-1, 2).max(axis=1)
        assert roc_auc_score(wrong.reshape(-1, 2).any(axis=1), pair) > 0.8
    else:
        assert roc_auc_score(wrong, suspicion) > 0.8


def test_attention_speaks_for_itself():
    """It follows who labelled a row, which the probability of the label does not show."""
    records, wrong = planted_records()
    right = records.probs.argmax(axis=1)[~wrong] == records.label[~wrong]
    careless = records.embedding[~wrong, 0] > 3
    suspicion = scorers.SCORERS["attention"](records)[~wrong]
    assert right.mean() > 0.95
    assert roc_auc_score(careless, suspicion) > 0.9


@pytest.mark.parametrize("name", NAMES)
def test_shuffling_the_rows_shuffles_the_answer(name):
    records, _ = planted_records(200)
    order = np.random.default_rng(1).permutation(200)
    shuffled = {}
    for field in fields(Records):
        values = getattr(records, field.name)
        if values is not None:
            by_epoch = values.shape[0] == EPOCHS
            shuffled[field.name] = values[:, order] if by_epoch else values[order]
    plain = scorers.SCORERS[name](records)
    np.testing.assert_allclose(scorers.SCORERS[name](Records(**shuffled)), plain[order], atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_degenerate_evidence_gives_finite_numbers(name):
    count, size = 6, 3
    label = np.array([0, 0, 1, 1, 2, 2])
    flat = np.zeros((2, count), dtype=np.float32)
    certain = np.eye(size, dtype=np.float32)[[0, 1, 1, 2, 2, 0]]
    for probs in (certain, np.full((count, size), 1 / 3, dtype=np.float32)):
        records = Records(
            label, probs, embedding=np.zeros((count, 4), dtype=np.float32), p_given=flat,
            margin=flat, loss=flat, predicted=flat.astype(np.int32), attention=flat,
            target_given=flat, target=probs,
        )  # fmt: skip
        assert np.isfinite(scorers.SCORERS[name](records)).all()


@pytest.mark.parametrize("name", NAMES)
def test_needs_are_declared(name):
    records, _ = planted_records(100)
    scorer = scorers.SCORERS[name]
    bare = {
        f.name: None for f in fields(Records) if f.name not in (*scorer.needs, "probs", "label")
    }
    assert np.isfinite(scorer(replace(records, **bare))).all()
    optional = [need for need in scorer.needs if need not in ("label", "probs")]
    for need in optional:
        with pytest.raises(DataError, match=need):
            scorer(replace(records, **{need: None}))


def test_unseen_rows_have_no_dynamics():
    records, _ = planted_records(50)
    margin = records.margin.copy()
    margin[:, 7] = np.nan
    margin[0, 3] = np.nan
    suspicion = scorers.SCORERS["aum"](replace(records, margin=margin))
    assert np.isnan(suspicion[7])
    assert suspicion[3] == pytest.approx(-records.margin[1:, 3].mean(), rel=1e-5)


def test_available_names_what_can_be_scored():
    bare = Records(np.array([0, 1]), np.eye(2, dtype=np.float32))
    assert "self_confidence" in scorers.available(bare)
    assert "aum" not in scorers.available(bare)
