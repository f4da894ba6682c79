"""LabelCleaner: what it finds, what it changes, whose opinion it takes."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from labelclean import LabelCleaner, RobustClassifier
from labelclean.errors import ConfigError, DataError
from noisy_tables import blobs, digits, flipped


@pytest.fixture(scope="module")
def story():
    X, y = digits()
    X, y = X[:800], y[:800]
    noisy = flipped(y, 0.2, 0)
    return X, y, noisy, LabelCleaner(random_state=0).fit(X, noisy)


def test_errors_are_found_counted_and_corrected(story):
    X, y, noisy, cleaner = story
    wrong = noisy != y
    assert average_precision_score(wrong, cleaner.p_error_) > 0.97
    assert abs(cleaner.noise_rate_ - wrong.mean()) < 0.05
    low, high = cleaner.noise_rate_interval_
    assert low < wrong.mean() < high
    changed = cleaner.corrected_labels_ != noisy
    assert changed.sum() > 100
    # As many as an expected 95 % right allows, less two standard errors of so many draws.
    least = 0.95 - 2 * np.sqrt(0.95 * 0.05 / changed.sum())
    assert (cleaner.corrected_labels_ == y)[changed].mean() > least
    assert cleaner.noise_transition_.shape == (10, 10)
    np.testing.assert_allclose(cleaner.noise_transition_.sum(1), 1)
    assert cleaner.score(X, y) > RobustClassifier(random_state=0).fit(X, noisy).score(X, y)


def test_the_table_and_the_arrays_say_the_same(story):
    _, _, noisy, cleaner = story
    table = cleaner.issues_
    assert sorted(table["row"]) == list(range(800))
    assert table["rank"].tolist() == list(range(1, 801))
    assert table["p_error"].is_monotonic_decreasing
    rows = table["row"].to_numpy()
    np.testing.assert_array_equal(cleaner.p_error_[rows], table["p_error"])
    np.testing.assert_array_equal(cleaner.suspicion_[rows], table["suspicion"])
    np.testing.assert_array_equal(noisy[rows], table["label_given"])
    np.testing.assert_array_equal(cleaner.suggested_labels_[rows], table["label_suggested"])


def test_resampling_drops_doubtful_rows_and_keeps_the_type():
    X, y = blobs(200)
    frame = pd.DataFrame(X, columns=list("abcd"))
    cleaner = LabelCleaner(random_state=0)
    part, label = cleaner.fit_resample(frame, flipped(y, 0.2, 1))
    assert isinstance(part, pd.DataFrame)
    assert (label == y[part.index]).mean() > 0.95
    flagged = cleaner.issues_[cleaner.issues_["action"] == "review"]["row"]
    assert not part.index.isin(flagged).any()
    assert not hasattr(cleaner, "transform")
    thin, _ = LabelCleaner(random_state=0).fit_resample(sparse.csr_matrix(X), flipped(y, 0.2, 1))
    assert thin.shape == part.shape


def test_verified_rows_are_never_touched(story):
    X, _, noisy, cleaner = story
    verified = np.zeros(800, bool)
    verified[cleaner.issues_["row"][:20]] = True
    again = LabelCleaner(random_state=0, policy="relabel").fit(X, noisy, verified=verified)
    assert (again.corrected_labels_[verified] == noisy[verified]).all()
    assert (again.p_error_[verified] == 0).all()


def test_copies_are_no_further_evidence_and_weight_zero_is_absence():
    X, y = blobs(120)
    noisy = flipped(y, 0.2, 2)
    once = LabelCleaner(random_state=0).fit(X, noisy)
    twice = LabelCleaner(random_state=0).fit(np.vstack([X, X]), np.hstack([noisy, noisy]))
    np.testing.assert_allclose(twice.p_error_[:120], once.p_error_, atol=1e-6)
    np.testing.assert_array_equal(twice.p_error_[:120], twice.p_error_[120:])
    weight = np.ones(120)
    weight[:20] = 0
    weighted = LabelCleaner(random_state=0).fit(X, noisy, sample_weight=weight)
    absent = LabelCleaner(random_state=0).fit(X[20:], noisy[20:])
    assert np.isnan(weighted.p_error_[:20]).all()
    np.testing.assert_allclose(weighted.p_error_[20:], absent.p_error_)
    np.testing.assert_allclose(weighted.predict_proba(X), absent.predict_proba(X))


@pytest.mark.parametrize("estimator", [LogisticRegression(max_iter=300), KNeighborsClassifier()])
def test_any_classifier_can_be_the_witness(estimator):
    X, y = blobs(240)
    noisy = np.array(["ant", "bee", "cat"])[flipped(y, 0.2, 3)]
    one = LabelCleaner(estimator, random_state=0).fit(X, noisy)
    two = LabelCleaner(estimator, random_state=0, n_jobs=2).fit(X, noisy)
    pd.testing.assert_frame_equal(one.issues_, two.issues_)
    wrong = noisy != np.array(["ant", "bee", "cat"])[y]
    assert average_precision_score(wrong, one.p_error_) > 0.9
    assert type(one.estimator_) is type(estimator)
    assert not hasattr(estimator, "classes_")
    assert set(one.predict(X)) <= {"ant", "bee", "cat"}


def test_a_witness_never_sees_the_group_it_judges():
    seen = []

    class Watched(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append(X[:, 0].copy())
            return super().fit(X, y, sample_weight)

    X, y = blobs(120)
    groups = np.arange(120) // 4
    X[:, 0] = groups
    LabelCleaner(Watched(), cv=3, random_state=0).fit(X, y, groups=groups)
    held_out = [set(range(30)) - set(part) for part in seen[:3]]
    assert sum(map(len, held_out)) == 30
    assert all(held_out)


def test_a_class_may_be_missing_from_a_fold():
    X, y = blobs(90)
    y[0], y[1:30] = 3, 0
    for estimator in (None, KNeighborsClassifier()):
        cleaner = LabelCleaner(estimator, random_state=0).fit(X, y)
        assert list(cleaner.classes_) == [0, 1, 2, 3]
        assert cleaner.predict_proba(X).shape == (90, 4)
        assert cleaner.corrected_labels_[0] == 3, "no class is relabelled away"


def test_pipelines_grids_and_routing():
    X, y = blobs(150)
    noisy = flipped(y, 0.2, 4)
    pipe = Pipeline([("scale", StandardScaler()), ("clean", LabelCleaner(random_state=0))])
    assert pipe.fit(X, noisy).score(X, y) > 0.9
    grid = GridSearchCV(
        LabelCleaner(RobustClassifier(random_state=0, epochs=20), cv=2, random_state=0),
        {"estimator__loss": ["gce", "cce"], "policy": ["careful", "drop"]},
        cv=2,
    ).fit(X, noisy)
    assert grid.best_score_ > 0.6
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            LabelCleaner(random_state=0).set_fit_request(sample_weight=True, groups=True),
        )
        weight = np.ones(150)
        weight[:10] = 0
        routed.fit(X, noisy, sample_weight=weight, groups=np.arange(150) // 2)
        assert np.isnan(routed[-1].p_error_[:10]).all()


def test_an_imbalanced_learn_pipeline_cleans_in_the_middle():
    pipeline = pytest.importorskip("imblearn.pipeline")
    X, y = blobs(200)
    pipe = pipeline.Pipeline(
        [
            ("scale", StandardScaler()),
            ("clean", LabelCleaner(random_state=0)),
            ("model", KNeighborsClassifier(1)),
        ]
    )
    noisy = flipped(y, 0.3, 5)
    dirty = make_pipeline(StandardScaler(), KNeighborsClassifier(1)).fit(X, noisy)
    assert pipe.fit(X, noisy).score(X, y) > dirty.score(X, y) + 0.1


def test_what_cannot_work_is_refused():
    X, y = blobs()
    with pytest.raises(ConfigError, match="Perceptron has no predict_proba; cv is 1"):
        LabelCleaner(Perceptron(), cv=1).fit(X, y)
    with pytest.raises(ConfigError, match="takes no sample_weight"):
        LabelCleaner(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(150))
    with pytest.raises(ConfigError, match="policy: mode is 'bold'"):
        LabelCleaner(policy="bold").fit(X, y)
    with pytest.raises(DataError, match="groups has shape"):
        LabelCleaner().fit(X, y, groups=[1, 2])
