"""Planting on real, clean data: nothing planted may show in what comes out."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from labelclean.benchmark.zoo import out_of_fold
from labelclean.calibration.flips import calibrate_with_flips
from labelclean.correction.policy import decide
from labelclean.evidence.ranking import most_suspect_first
from labelclean.records.records import Records


@pytest.mark.slow
def test_clean_digits_stay_as_they_are():
    x, y = load_digits(return_X_y=True)
    y = y.astype(np.int64)
    seen = []

    def fit(labels):
        seen.append(labels.copy())
        probs = out_of_fold(LogisticRegression(max_iter=300, C=0.1), x / 16, labels, 10)
        single = probs.astype(np.float32)
        return Records(labels, single, single, embedding=x.astype(np.float32))

    report = calibrate_with_flips(fit, y, 10, np.random.default_rng(0))
    assert [int((labels != y).sum()) for labels in seen] == [0, 180, 180]
    np.testing.assert_array_equal(report.records.label, y)
    assert report.judgement.interval[0] == 0.0
    verdicts = decide(
        y,
        report.judgement.p_error,
        most_suspect_first(report.judgement.log_odds),
        report.judgement.suggested,
        report.judgement.p_suggested,
    )
    assert (verdicts.corrected != y).mean() < 0.01
    assert {change.row for change in verdicts.changes} == set(
        np.flatnonzero(verdicts.corrected != y)
    )
    assert report.auroc["self_confidence"] > 0.9
    assert report.auroc["neighbours"] > 0.9
