"""What is saved comes back, and a file can do no harm."""

import pickle

import numpy as np
import pandas as pd
import pytest

from labelclean import LabelCleaner, RobustClassifier
from labelclean.errors import ConfigError, DataError
from noisy_tables import blobs, flipped


@pytest.mark.parametrize("hidden", [0, 5])
@pytest.mark.parametrize("names", [["ant", "bee", "cat"], [3, 5, 9]], ids=["text", "integers"])
def test_a_classifier_comes_back(tmp_path, hidden, names):
    X, y = blobs()
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf = RobustClassifier("nal", hidden=hidden, random_state=0).fit(frame, np.array(names)[y])
    clf.save(tmp_path / "clf.safetensors")
    back = RobustClassifier.load(tmp_path / "clf.safetensors")
    assert back.get_params() == clf.get_params()
    np.testing.assert_array_equal(back.predict_proba(frame), clf.predict_proba(frame))
    np.testing.assert_array_equal(back.predict(frame), clf.predict(frame))
    assert list(back.feature_names_in_) == list("abcd")
    again = pickle.loads(pickle.dumps(clf))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(frame), clf.predict_proba(frame))


def test_a_cleaner_comes_back(tmp_path):
    X, y = blobs()
    noisy = np.array(["ant", "bee", "cat"])[flipped(y, 0.2, 0)]
    cleaner = LabelCleaner(random_state=0).fit(X, noisy)
    cleaner.save(tmp_path / "cleaner.safetensors")
    back = LabelCleaner.load(tmp_path / "cleaner.safetensors")
    pd.testing.assert_frame_equal(back.issues_, cleaner.issues_)
    assert back.issues_.attrs == cleaner.issues_.attrs
    for name in ("p_error_", "suspicion_", "suggested_labels_", "corrected_labels_",
                 "noise_transition_", "noise_rate_", "noise_rate_interval_", "notes_"):  # fmt: skip
        np.testing.assert_array_equal(getattr(back, name), getattr(cleaner, name))
    np.testing.assert_array_equal(back.predict_proba(X), cleaner.predict_proba(X))


def test_what_cannot_be_saved_or_loaded_is_refused(tmp_path):
    X, y = blobs()
    clf = RobustClassifier(random_state=np.random.RandomState(0)).fit(X, y)
    with pytest.raises(ConfigError, match="RandomState"):
        clf.save(tmp_path / "clf")
    assert not list(tmp_path.iterdir())
    foreign = LabelCleaner(RobustClassifier(random_state=0), cv=2).fit(X, y)
    with pytest.raises(ConfigError, match="without pickle"):
        foreign.save(tmp_path / "cleaner")
    (tmp_path / "bad").write_bytes(pickle.dumps(clf))
    with pytest.raises(DataError, match="no saved estimator"):
        RobustClassifier.load(tmp_path / "bad")
    RobustClassifier(random_state=0).fit(X, y).save(tmp_path / "good")
    with pytest.raises(DataError, match="holds RobustClassifier, not LabelCleaner"):
        LabelCleaner.load(tmp_path / "good")
