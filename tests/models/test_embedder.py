"""Features of frozen backbones: what they are, and that company never changes them."""

import pytest
import torch

from labelclean.models.backbones import build_backbone
from labelclean.models.classifier import PictureClassifier, feature_width
from labelclean.models.embedder import Embedder, stage_names
from labelclean.models.folding import fold_batch_norms
from labelclean.models.head import FeatureScaling, Head, signed_root

NETWORKS = ["test_resnet", "test_vit", "test_convnext", "test_efficientnet", "test_byobnet"]


def pictures(count: int, size: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (count, size, size, 3), generator=generator, dtype=torch.uint8)


@pytest.fixture(scope="module")
def lite0():
    backbone = build_backbone("lite0", pretrained=True, image_size=64)
    backbone.network.eval()
    return backbone


def test_a_network_that_is_to_be_trained_is_left_as_it_is():
    backbone = build_backbone("lite0", pretrained=True, image_size=32)
    Embedder(backbone, stages=3)
    assert backbone.network.training
    assert all(p.requires_grad for p in backbone.network.parameters())


def test_lite0_gives_three_stages_and_the_last_layer(lite0):
    embedder = Embedder(lite0, stages=3)
    assert embedder.layers == ("blocks.4", "blocks.5", "blocks.6")
    assert embedder.width == 112 + 192 + 320 + 1280
    assert Embedder(lite0, stages=0).width == 1280


def test_features_are_the_spatial_means(lite0):
    embedder, batch = Embedder(lite0, stages=3), pictures(3, 64)
    with torch.inference_mode():
        x = embedder.pixels(batch)
        assert torch.allclose(x[0, :, 5, 7], (batch[0, 5, 7].float() / 255 - 0.5) / 0.5)
        features, plain = embedder(batch), lite0.network(x)
        stages = lite0.network.forward_intermediates(x, intermediates_only=True)
    assert torch.allclose(features[:, -1280:], plain, atol=1e-4)
    assert torch.allclose(features[:, :112], stages[-2].mean((2, 3)), atol=1e-4)
    assert torch.allclose(features[:, 304:624], stages[-1].mean((2, 3)), atol=1e-4)


def test_company_and_batch_size_never_change_a_feature(lite0):
    embedder, batch = Embedder(lite0, stages=3), pictures(32, 64)
    with torch.inference_mode():
        features = embedder(batch)
        order = torch.randperm(32, generator=torch.Generator().manual_seed(2))
        assert torch.equal(embedder(batch[order]), features[order])
        padded = torch.zeros_like(batch)
        padded[:5] = batch[:5]
        assert torch.equal(embedder(padded)[:5], features[:5])


@pytest.mark.parametrize("name", NETWORKS)
def test_any_timm_network_gives_finite_features(name):
    backbone = build_backbone(name, pretrained=False)
    embedder = Embedder(backbone, stages=3)
    with torch.inference_mode():
        features = embedder(pictures(2, backbone.spec.size))
    assert features.shape == (2, embedder.width)
    assert embedder.width > feature_width(backbone)
    assert torch.isfinite(features).all()


def test_a_stage_that_only_repeats_the_last_layer_is_left_out():
    embedder = Embedder(build_backbone("resnet20", pretrained=False), stages=3)
    assert embedder.layers == ("layer1", "layer2")
    assert embedder.width == 16 + 32 + 64


def test_folding_removes_every_batch_norm_and_changes_nothing(lite0):
    network = lite0.network.eval()
    probe = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(3))
    folded = fold_batch_norms(network, probe)
    assert not [m for m in folded.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    with torch.inference_mode():
        assert torch.allclose(network(probe), folded(probe), atol=1e-4)


def test_folding_leaves_a_convolution_with_two_readers_alone():
    class Branch(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(3, 4, 1), torch.nn.BatchNorm2d(4)
            self.norm.running_mean.fill_(1.0)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.conv(x)
            return self.norm(y) + y

    network = Branch().eval()
    assert fold_batch_norms(network, torch.randn(2, 3, 4, 4)) is network


def test_stages_of_a_network_without_feature_information():
    assert stage_names(torch.nn.Linear(2, 2), 3) == []


def test_heads():
    features = torch.randn(4, 6)
    plain = Head(6, 3, hidden=0, attention=False)(features)
    assert plain.logits.shape == (4, 3)
    assert plain.attention is None
    watchful = Head(6, 3, hidden=5, attention=True)(features)
    assert watchful.logits.shape == (4, 3)
    assert watchful.attention is not None
    assert watchful.attention.shape == (4,)


def test_gradients_through_attention_reach_the_backbone():
    backbone = build_backbone("test_resnet", pretrained=False, image_size=32)
    head = Head(feature_width(backbone), 3, hidden=0, attention=True)
    model = PictureClassifier(backbone, head)
    model(pictures(2, 32)).attention.sum().backward()
    assert all(p.grad is not None for p in model.network.parameters())


def test_scaling():
    assert signed_root(torch.tensor([-4.0, 0.0, 9.0])).tolist() == [-2.0, 0.0, 3.0]
    scaling = FeatureScaling(2)
    scaling.mean.copy_(torch.tensor([1.0, 0.0]))
    scaling.scale.copy_(torch.tensor([2.0, 1.0]))
    assert scaling(torch.tensor([[4.0, -1.0]])).tolist() == [[2.0, -1.0]]
