"""Heads: what dropout does while training and afterwards, and L2 beside it."""

import pytest
import torch

from labelclean.errors import ConfigError
from labelclean.losses import build
from labelclean.models.head import Head
from labelclean.models.settings import ModelSettings
from labelclean.training.optim import build_optimizer
from labelclean.training.settings import TrainSettings


def test_dropout_leaves_units_out_while_training_only():
    head = Head(1000, 2, hidden=0, attention=False, dropout=0.2)
    with torch.no_grad():
        head.classifier.weight.fill_(1.0)
        head.classifier.bias.zero_()
    ones = torch.ones(400, 1000)
    torch.manual_seed(0)
    said = head(ones).logits[:, 0]
    # 1,000 units, of which each stays with a chance of 0.8 and then counts 1.25.
    kept = (said / 1.25).round()
    torch.testing.assert_close(said, 1.25 * kept)
    assert said.mean().item() == pytest.approx(1000, abs=5)
    assert kept.std().item() == pytest.approx((1000 * 0.8 * 0.2) ** 0.5, rel=0.15)
    head.eval()
    assert (head(ones).logits == 1000).all()


def test_attention_sees_what_the_classifier_sees():
    head = Head(50, 2, hidden=0, attention=True, dropout=0.9)
    head.attention.load_state_dict(
        {"weight": head.classifier.weight[:1], "bias": head.classifier.bias[:1]}
    )
    answer = head(torch.randn(8, 50))
    torch.testing.assert_close(answer.attention, answer.logits[:, 0])


def test_l2_is_coupled_and_spares_biases():
    head = Head(1, 2, hidden=0, attention=False)
    with torch.no_grad():
        for value in head.parameters():
            value.fill_(2.0)
    settings = TrainSettings(optimizer="sgd", learning_rate=0.1, weight_decay=1e-4)
    optimizer = build_optimizer([head], build("cce"), settings)
    for value in head.parameters():
        value.grad = torch.zeros_like(value)
    optimizer.step()
    assert head.classifier.weight.flatten().tolist() == pytest.approx([1.99998] * 2, abs=1e-6)
    assert head.classifier.bias.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_dropout_of_everything_is_refused(share):
    with pytest.raises(ConfigError, match=r"model\.dropout"):
        ModelSettings(dropout=share)
