"""Estimators on pictures: pixels and paths, frozen and trained backbones."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from labelclean import LabelCleaner, RobustClassifier, audit
from labelclean.errors import ConfigError, DataError
from labelclean.estimators.audited import recipe_of
from labelclean.estimators.inputs import as_pictures


@pytest.fixture(scope="module")
def pixels() -> tuple[np.ndarray, np.ndarray]:
    """Dark and bright noise: two classes anyone can tell apart."""
    rng = np.random.default_rng(0)
    y = np.arange(32) % 2
    X = rng.integers(0, 90, (32, 16, 16, 3)) + 150 * y[:, None, None, None]
    return X.astype(np.uint8), np.array(["dark", "light"])[y]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELCLEAN_CACHE", str(tmp_path / "cache"))


def test_a_network_from_random_weights(pixels, tmp_path):
    X, y = pixels
    clf = RobustClassifier(
        "cce", backbone="resnet20", mode="scratch", epochs=3, batch_size=8, lr=0.05, random_state=0
    ).fit(X, y)
    assert clf.score(X, y) > 0.8
    assert clf.transform(X).shape == (32, 64)
    clf.save(tmp_path / "clf.safetensors")
    for back in (
        RobustClassifier.load(tmp_path / "clf.safetensors"),
        pickle.loads(pickle.dumps(clf)),  # noqa: S301
    ):
        np.testing.assert_allclose(back.predict_proba(X), clf.predict_proba(X), atol=1e-6)
    with pytest.raises(DataError, match="fitted on pictures"):
        clf.predict(np.zeros((2, 4)))


def test_an_embedding_is_what_the_last_layer_sees(pixels, tmp_path):
    X, y = pixels
    clf = RobustClassifier("cce", hidden=8, epochs=2, random_state=0).fit(X, y)
    clf.save(tmp_path / "clf.safetensors")
    last = clf.model_.classifier.classifier
    for one in (clf, RobustClassifier.load(tmp_path / "clf.safetensors")):
        seen = one.transform(X)
        assert seen.shape == (32, 8)
        assert len(one.get_feature_names_out()) == 8
        weight, bias = (value.detach().numpy() for value in (last.weight, last.bias))
        logits = seen @ weight.T + bias
        np.testing.assert_allclose(logits[:, 1] - logits[:, 0], one.decision_function(X), atol=1e-4)


def test_paths_and_a_frozen_backbone(pixels, tmp_path):
    X, y = pixels
    paths = []
    for i, picture in enumerate(X):
        paths.append(str(tmp_path / f"{i}.png"))
        Image.fromarray(picture).save(paths[-1])
    clf = RobustClassifier(random_state=0).fit(paths, y)
    assert clf.score(paths, y) == 1.0
    probs = clf.predict_proba(X)
    clf.save(tmp_path / "clf.safetensors")
    back = RobustClassifier.load(tmp_path / "clf.safetensors")
    np.testing.assert_allclose(back.predict_proba(paths), probs, atol=1e-5)
    with pytest.raises(DataError, match=r"1 of 2 pictures cannot be read: row 1: no such file"):
        clf.predict([paths[0], str(tmp_path / "none.png")])


def test_paths_come_in_any_dress():
    paths = ["a.png", "b/c.jpg"]
    for dress in (paths, np.array(paths), pd.Series(paths), pd.DataFrame({"image": paths}),
                  [Path(p) for p in paths], np.array(paths, dtype=object)):  # fmt: skip
        assert as_pictures(dress).tolist() == paths
    for other in ([[1.0], [2.0]], np.zeros((2, 1)), pd.DataFrame({"a": [1, 2]}), [1, 2], []):
        assert as_pictures(other) is None


def test_a_cleaner_of_pictures(pixels):
    X, y = pixels
    noisy = y.copy()
    noisy[4] = "light"
    cleaner = LabelCleaner(random_state=0, n_jobs=2).fit(X, noisy)
    assert cleaner.issues_["row"][0] == 4
    assert not hasattr(cleaner, "n_features_in_")
    part, label = cleaner.fit_resample(X, noisy)
    assert len(part) == len(label)
    assert cleaner.predict(X)[4] == "dark"


@pytest.mark.parametrize(
    ("mode", "backbone"), [("head", "lite0"), ("finetune", "lite0"), ("scratch", "resnet20")]
)
def test_a_cleaner_judges_pictures_as_an_audit_does(pixels, tmp_path, mode, backbone):
    X, y = pixels
    noisy = y.copy()
    noisy[4] = "light"
    found = audit(
        (X, noisy), out=tmp_path / "run", recipe=recipe_of("nal", None, mode, backbone, 3),
        device="cpu", threads=1, seed=3,
    ).issues  # fmt: skip
    cleaner = LabelCleaner(
        loss="nal", mode=mode, backbone=backbone, epochs=3, device="cpu", random_state=3
    )
    cleaner.fit_resample(X, noisy)
    ours = cleaner.issues_.set_index("row")
    same = ["p_error", "p_given", "p_suggested", "attention", "target_given", "margin"]
    same += ["neighbour_agreement"] if mode != "scratch" else []
    assert [name for name in ours.columns if name in same] == same
    theirs = found.set_index("row").loc[ours.index, same]
    np.testing.assert_allclose(ours[same].to_numpy(), theirs.to_numpy(float), rtol=1e-6, atol=1e-7)


def test_the_loss_of_a_cleaner_is_a_name_of_the_catalogue(pixels):
    with pytest.raises(ConfigError, match="Did you mean 'nal'"):
        LabelCleaner(loss="nall", mode="finetune").fit(*pixels)
