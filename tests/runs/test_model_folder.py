"""The folder model/: the trained model comes back, and its card says where it comes from."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from labelclean.models.backbones import build_backbone
from labelclean.models.classifier import PictureClassifier, feature_width
from labelclean.models.head import FeatureScaling, Head
from labelclean.models.onnx import Whole
from labelclean.models.saved import load_model
from labelclean.recipe import Recipe, load_recipe
from labelclean.records.records import Records
from labelclean.runs.model_folder import write_model
from labelclean.training.samples import Fitted
from small_manifests import manifest_of

MANIFEST = replace(manifest_of(["ant", "bee", "cat", "bee"]), digest="ab" * 32)
FACTS = {
    "counts": {"relabel": 3, "review": 2, "drop": 0},
    "noise_rate": 0.125,
    "corrected": False,
    "accuracy": {"split test": 0.875},
}


def recipe(*settings: str) -> Recipe:
    return load_recipe(None, ("loss.name=gce", "loss.q=0.6", *settings))


def fitted(model, scaling=None, backbone=None) -> Fitted:
    """Give a training of 37 rows."""
    label = np.arange(37) % 3
    records = Records(label, np.eye(3, dtype=np.float32)[label])
    other = np.zeros((0, 3), np.float32)
    return Fitted(records, model.eval(), scaling, backbone, other, 11, -1)


@pytest.fixture
def head() -> Fitted:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        scaling = FeatureScaling(4)
        scaling.mean.copy_(torch.randn(4))
        return fitted(Head(4, 3, hidden=6, attention=False), scaling)


def test_a_head_on_features_comes_back_with_its_history(tmp_path, head):
    folder = tmp_path / "model"
    write_model(folder, head, recipe("training.mode=head"), MANIFEST, FACTS)
    found = load_model(folder)
    assert (found.classes, found.mode, found.backbone) == (("ant", "bee", "cat"), "head", None)
    assert found.notes["loss"] == {"name": "gce", "params": {"q": 0.6}}
    assert found.notes["epochs"] == 11
    assert found.notes["input_digest"] == MANIFEST.digest
    x = torch.randn(5, 4)
    with torch.inference_mode():
        expected = torch.softmax(head.model(head.scaling(x)).logits, dim=1)
        assert torch.equal(Whole(found).eval()(x), expected)


@pytest.mark.parametrize("corrected", [False, True])
def test_the_card_says_what_the_numbers_rest_on(tmp_path, head, corrected):
    facts = FACTS | {"corrected": corrected, "decided": 4, "warnings": ("Few rows.",)}
    write_model(tmp_path, head, recipe("training.mode=head"), MANIFEST, facts)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    for words in ("made.csv", MANIFEST.digest, "gce", "37 rows", "12.5", "87.5", "Few rows."):
        assert words in card, words
    assert ("corrected" in card.split("---")[-1]) or not corrected
    other = tmp_path / "other"
    write_model(other, head, recipe("training.mode=head"), MANIFEST, facts | {"corrected": False})
    assert (card == (other / "README.md").read_text(encoding="utf-8")) == (not corrected)


@pytest.mark.parametrize(("mode", "license"), [("scratch", "other"), ("finetune", '"apache-2.0"')])
def test_a_whole_network_is_stored_with_the_size_it_looks_at(tmp_path, mode, license):
    """Published weights bring their licence; a network from scratch has none of them."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        backbone = build_backbone("test_resnet", pretrained=False, image_size=32)
        head = Head(feature_width(backbone), 3, hidden=0, attention=False)
        network = PictureClassifier(backbone, head)
    settings = recipe(
        f"training.mode={mode}", "model.backbone=test_resnet", "model.pretrained=true"
    )
    write_model(tmp_path, fitted(network, None, backbone), settings, MANIFEST, FACTS)
    found = load_model(tmp_path)
    assert (found.mode, found.name) == (mode, "test_resnet")
    assert found.backbone.spec.size == 32
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert f"license: {license}" in card.splitlines()
    assert "32" in card
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["label_names"] == ["ant", "bee", "cat"]
    pixels = torch.randint(0, 256, (2, 32, 32, 3)).to(torch.uint8)
    with torch.inference_mode():
        expected = torch.softmax(network.eval()(pixels).logits, dim=1)
        assert torch.allclose(Whole(found).eval()(pixels), expected)
