"""Networks with frozen lower stages: the same function, and only the upper part moves."""

import pytest
import torch

from labelclean.errors import ConfigError
from labelclean.models.backbones import build_backbone
from labelclean.models.classifier import PictureClassifier, feature_width
from labelclean.models.head import Head

NAMES = ("test_efficientnet.r160_in1k", "test_resnet.r160_in1k")


def classifier(name: str, stages: int) -> PictureClassifier:
    torch.manual_seed(0)
    backbone = build_backbone(name, pretrained=False, image_size=64)
    head = Head(feature_width(backbone), 3, hidden=0, attention=False)
    return PictureClassifier(backbone, head, stages)


def pictures(count: int = 4) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (count, 64, 64, 3), generator=generator).to(torch.uint8)


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_network_answers_as_the_whole_one(name):
    whole, cut = classifier(name, 0).eval(), classifier(name, 2).eval()
    assert cut.state_dict().keys() == whole.state_dict().keys()
    cut.load_state_dict(whole.state_dict())
    with torch.inference_mode():
        expected = whole(pictures()).logits
        assert torch.allclose(cut(pictures()).logits, expected, atol=2e-3)
        assert torch.equal(cut(cut.lower(pictures())).logits, cut(pictures()).logits)


@pytest.mark.parametrize("name", NAMES)
def test_only_the_upper_part_is_trained(name):
    model = classifier(name, 2).train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    moving = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(moving, lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(model.lower(pictures(8))).logits[:, 0].sum().backward()
        optimizer.step()
    after = model.state_dict()
    changed = {key for key in before if not torch.equal(after[key], before[key])}
    stem = ("conv_stem", "bn1", "blocks.0", "blocks.1", "conv1", "layer1", "layer2")
    assert changed
    assert not [key for key in changed if key.startswith(tuple(f"network.{s}." for s in stem))]
    assert any(key.startswith("head.") for key in changed)


@pytest.mark.parametrize(
    ("name", "stages", "words"),
    [
        ("test_resnet.r160_in1k", 4, "has 4 stages"),
        ("test_vit.r160_in1k", 1, "not built so"),
    ],
)
def test_what_cannot_be_cut_is_refused(name, stages, words):
    backbone = build_backbone(name, pretrained=False, image_size=160)
    head = Head(1, 2, hidden=0, attention=False)
    with pytest.raises(ConfigError, match=words):
        PictureClassifier(backbone, head, stages)
