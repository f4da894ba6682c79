"""RobustClassifier: what it takes, what it leaves alone, and that it is robust."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelclean import RobustClassifier
from labelclean.errors import ConfigError, DataError
from labelclean.losses import LOSSES
from labelclean.strategies import STRATEGIES
from noisy_tables import blobs, digits, flipped


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("hidden", [0, 8])
def test_every_loss_of_the_catalogue_trains(loss, hidden):
    X, y = blobs()
    params = {"T": np.eye(3) * 0.7 + 0.1} if loss in {"forward", "backward", "adaptation"} else None
    clf = RobustClassifier(loss, params, hidden=hidden, random_state=0).fit(X, y)
    assert clf.score(X, y) > 0.8
    assert clf.transform(X).shape == (150, clf.model_.width)


@pytest.mark.parametrize(
    "names",
    [
        np.array(["ant", "bee", "cat"]),
        np.array(["ant", "bee", "cat"], dtype=object),
        np.array([7, -3, 40]),
        np.array([0.0, 1.0, 2.0]),
    ],
    ids=["text", "object", "integer", "float"],
)
def test_labels_of_any_type_come_back_as_they_came(names):
    X, y = blobs()
    clf = RobustClassifier(random_state=0).fit(X, names[y])
    assert list(clf.classes_) == sorted(names)
    assert clf.predict(X).dtype == names.dtype
    assert (clf.predict(X) == names[y]).mean() > 0.9
    assert (clf.classes_[clf.predict_proba(X).argmax(1)] == clf.predict(X)).all()


def test_true_and_false_are_labels():
    X, y = blobs(classes=2)
    clf = RobustClassifier(random_state=0).fit(X, y == 1)
    assert clf.predict(X).dtype == bool
    assert clf.decision_function(X).shape == (150,)


def test_equal_seeds_agree_and_nothing_global_moves():
    X, y = blobs()
    np.random.seed(3)
    torch.manual_seed(3)
    numpy_before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()
    threads = torch.get_num_threads()
    first = RobustClassifier(random_state=5, n_jobs=1).fit(X, y).predict_proba(X)
    again = RobustClassifier(random_state=5, n_jobs=2).fit(X, y).predict_proba(X)
    RobustClassifier().fit(X, y)
    assert np.array_equal(first, again)
    assert np.array_equal(np.random.get_state()[1], numpy_before)
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert torch.get_num_threads() == threads
    other = RobustClassifier(random_state=6).fit(X, y).predict_proba(X)
    assert not np.array_equal(first, other)
    for state in (np.random.RandomState(1), np.random.default_rng(1)):
        RobustClassifier(random_state=state, epochs=2).fit(X, y)


def test_arguments_are_never_changed():
    X, y = blobs()
    weight, params = np.ones(150), {"q": 0.5}
    before = X.copy(), y.copy(), weight.copy()
    RobustClassifier(loss_params=params, random_state=0).fit(X, y, weight).predict(X)
    assert params == {"q": 0.5}
    for now, then in zip((X, y, weight), before, strict=True):
        assert np.array_equal(now, then)


def test_weight_zero_is_absence_and_weight_two_is_twice():
    X, y = blobs()
    weight = np.random.default_rng(0).integers(0, 3, 150)
    weighted = RobustClassifier(random_state=0).fit(X, y, weight)
    repeated = RobustClassifier(random_state=0).fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-8)
    gone = RobustClassifier(random_state=0).fit(X, y, (y != 2).astype(float))
    assert list(gone.classes_) == [0, 1]


def test_sparse_and_named_features():
    X, y = blobs()
    dense = RobustClassifier(random_state=0).fit(X, y)
    thin = RobustClassifier(random_state=0).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(dense.predict_proba(X), thin.predict_proba(sparse.csr_array(X)))
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = RobustClassifier(random_state=0).fit(frame, pd.Series(y))
    assert list(named.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        named.predict(frame.rename(columns={"a": "z"}))
    shown = named.set_output(transform="pandas").transform(frame)
    assert list(shown.columns) == [f"robustclassifier{i}" for i in range(4)]


def test_it_lives_in_scikit_learn():
    X, y = blobs()
    frame = pd.DataFrame(X, columns=list("abcd"))
    columns = make_column_transformer((StandardScaler(), ["a", "b"]), remainder="drop")
    pipe = make_pipeline(columns, RobustClassifier(random_state=0))
    grid = GridSearchCV(
        pipe, {"robustclassifier__loss": ["gce", "sce"], "robustclassifier__hidden": [0, 4]}, cv=2
    ).fit(frame, y)
    assert grid.best_score_ > 0.8
    assert cross_val_predict(clone(grid.best_estimator_), frame, y, cv=2).shape == (150,)
    calibrated = CalibratedClassifierCV(RobustClassifier(random_state=0), cv=2).fit(X, y)
    assert calibrated.predict_proba(X).shape == (150, 3)
    assert "RobustClassifier" in grid.best_estimator_._repr_html_()


def test_validation_stops_early_and_answers_well():
    X, y = blobs(300)
    clf = RobustClassifier(validation=0.2, epochs=200, random_state=0).fit(X, flipped(y, 0.2, 0))
    assert clf.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "gcee"}, "Did you mean 'gce'"),
        ({"loss_params": {"Q": 1}}, "no parameter 'Q'"),
        ({"mode": "heads"}, "Did you mean 'head'"),
        ({"epochs": 0, "validation": 1.5}, "validation is 1.5"),
        ({"lr": -1}, "learning_rate is -1"),
        ({"random_state": "x"}, "random_state is 'x'"),
    ],
)
def test_wrong_parameters_are_refused_when_fitting(params, message):
    clf = RobustClassifier(**params)
    with pytest.raises((ConfigError, DataError), match=message):
        clf.fit(*blobs())


def test_what_cannot_be_used_is_refused():
    X, y = blobs()
    with pytest.raises(NotFittedError):
        RobustClassifier().predict(X)
    with pytest.raises(DataError, match="at least two classes"):
        RobustClassifier().fit(X, np.zeros(150))
    with pytest.raises(DataError, match="Pictures are uint8"):
        RobustClassifier().fit(X.reshape(75, 2, 4), y[:75])
    with pytest.raises(ValueError, match="zero"):
        RobustClassifier().fit(X, y, np.zeros(150))
    huge = sparse.csr_matrix((2, 2**30))
    with pytest.raises(DataError, match="TruncatedSVD"):
        RobustClassifier().fit(huge, [0, 1])


def test_features_load_no_image_code():
    code = (
        "import sys, numpy as np\n"
        "from labelclean import LabelCleaner, RobustClassifier\n"
        "X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2\n"
        "RobustClassifier(random_state=0).fit(X, y).predict(X)\n"
        "LabelCleaner(random_state=0).fit(X, y).predict(X)\n"
        "print([n for n in ('PIL', 'timm', 'torchvision') if n in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("rate", "lead"), [(0.4, 0.03), (0.0, -0.01)])
def test_robust_on_noise_and_no_worse_without(rate, lead):
    X, y = digits()
    ours, theirs = [], []
    for seed in range(3):
        a, b, ya, yb = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
        noisy = flipped(ya, rate, seed)
        ours.append(RobustClassifier(random_state=seed).fit(a, noisy).score(b, yb))
        rival = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        theirs.append(rival.fit(a, noisy).score(b, yb))
    assert np.mean(ours) > np.mean(theirs) + lead


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_every_strategy_trains_a_head_with_a_hidden_layer(name):
    X, y = blobs()
    clf = RobustClassifier("cce", strategy=name, hidden=16, random_state=0).fit(X, y)
    assert clf.score(X, y) > 0.8
    again = RobustClassifier("cce", strategy=name, hidden=16, random_state=0).fit(X, y)
    assert (clf.predict_proba(X) == again.predict_proba(X)).all()


def test_a_strategy_that_cannot_work_is_refused():
    X, y = blobs()
    with pytest.raises(ConfigError, match="two networks must come to differ"):
        RobustClassifier("cce", strategy="co_teaching").fit(X, y)
    with pytest.raises(ConfigError, match="keeps a memory of its own"):
        RobustClassifier("nal", strategy="mixup").fit(X, y)
    with pytest.raises(ConfigError, match="no parameter 'temperature'"):
        RobustClassifier(strategy="mixup", strategy_params={"temperature": 1}).fit(X, y)
