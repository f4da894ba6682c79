"""The CIFAR ResNets of the papers (20, 32, 44, 56 and 34 layers), registered as timm models.

He, Zhang, Ren, Sun, Deep Residual Learning for Image Recognition, 2016, section 4.2: a 3x3 stem of
16 channels, three stages of n blocks with 16, 32 and 64 channels, depth 6n + 2, and shortcuts
without parameters (option A: every second pixel, new channels are zero). `resnet34_cifar` is the
wide 34-layer ResNet of the same paper with a 3x3 stem and no pooling before its four stages, as NAL
and its relatives train it on 32-pixel pictures.
"""

from typing import Any

import torch.nn.functional as F
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from timm.models.resnet import BasicBlock, ResNet
from torch import Tensor, nn

__all__ = ["CifarResNet", "resnet20", "resnet32", "resnet34_cifar", "resnet44", "resnet56"]

CIFAR_RESNETS = ("resnet20", "resnet32", "resnet44", "resnet56", "resnet34_cifar")

default_cfgs = generate_default_cfgs(
    {
        f"{name}.untrained": {
            "num_classes": 10,
            "input_size": (3, 32, 32),
            "pool_size": (8, 8),
            "crop_pct": 1.0,
            "interpolation": "bicubic",
            "mean": (0.4914, 0.4822, 0.4465),
            "std": (0.2470, 0.2435, 0.2616),
            "first_conv": "conv1",
            "classifier": "fc",
        }
        for name in CIFAR_RESNETS
    }
)


def _convolution(channels_in: int, channels: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(channels_in, channels, 3, stride=stride, padding=1, bias=False)


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.stride, self.extra = stride, channels - channels_in
        self.conv1 = _convolution(channels_in, channels, stride)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = _convolution(channels, channels, 1)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """Give (B, channels, H / stride, W / stride)."""
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        shortcut = x[:, :, :: self.stride, :: self.stride]
        if self.extra:
            # Zeros on both sides, as published: (left, right, top, bottom, front, back).
            half = self.extra // 2
            shortcut = F.pad(shortcut, (0, 0, 0, 0, half, self.extra - half))
        return F.relu(y + shortcut)


class CifarResNet(nn.Module):
    """A ResNet for 32-pixel pictures with timm's interface."""

    def __init__(self, blocks: int, num_classes: int = 10, in_chans: int = 3) -> None:
        super().__init__()
        self.num_classes, self.num_features = num_classes, 64
        self.conv1 = _convolution(in_chans, 16, 1)
        self.bn1 = nn.BatchNorm2d(16)
        widths = (16, 16, 32, 64)
        for stage in (1, 2, 3):
            first = Block(widths[stage - 1], widths[stage], 1 if stage == 1 else 2)
            rest = [Block(widths[stage], widths[stage], 1) for _ in range(blocks - 1)]
            setattr(self, f"layer{stage}", nn.Sequential(first, *rest))
        self.feature_info = [
            {"num_chs": widths[stage], "reduction": 2 ** (stage - 1), "module": f"layer{stage}"}
            for stage in (1, 2, 3)
        ]
        self.reset_classifier(num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)

    def get_classifier(self) -> nn.Module:
        """Give the last layer."""
        return self.fc

    def reset_classifier(self, num_classes: int, global_pool: str | None = None) -> None:
        """Replace the last layer; 0 classes: give features."""
        self.num_classes = num_classes
        self.fc = nn.Linear(self.num_features, num_classes) if num_classes else nn.Identity()

    def forward_features(self, x: Tensor) -> Tensor:
        """Give the last feature map, (B, 64, H/4, W/4)."""
        x = F.relu(self.bn1(self.conv1(x)))
        for stage in (1, 2, 3):
            x = getattr(self, f"layer{stage}")(x)
        return x

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """Pool and classify, or only pool."""
        pooled = x.mean((2, 3))
        return pooled if pre_logits else self.fc(pooled)

    def forward(self, x: Tensor) -> Tensor:
        """Give logits (B, num_classes), or features (B, 64) without classes."""
        return self.forward_head(self.forward_features(x))


def _wide_resnet(num_classes: int = 10, in_chans: int = 3, **kwargs: Any) -> nn.Module:
    """Build timm's ResNet of basic blocks so that it keeps every pixel until its second stage."""
    blocks: Any = BasicBlock  # annotated in timm as an instance
    network: Any = ResNet(
        blocks, (3, 4, 6, 3), num_classes=num_classes, in_chans=in_chans, zero_init_last=False,
        **kwargs,
    )  # fmt: skip
    network.conv1 = _convolution(in_chans, 64, 1)
    nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")
    network.maxpool = nn.Identity()
    for at, stage in enumerate(network.feature_info):
        stage["reduction"] = 2 ** max(0, at - 1)
    built: nn.Module = network
    return built


def _build(variant: str, pretrained: bool, **kwargs: Any) -> nn.Module:
    blocks = (int(variant.removeprefix("resnet")) - 2) // 6
    network: nn.Module = build_model_with_cfg(
        CifarResNet, variant, pretrained, blocks=blocks, **kwargs
    )
    return network


@register_model
def resnet20(pretrained: bool = False, **kwargs: Any) -> nn.Module:
    """Build the 20-layer network."""
    return _build("resnet20", pretrained, **kwargs)


@register_model
def resnet32(pretrained: bool = False, **kwargs: Any) -> nn.Module:
    """Build the 32-layer network."""
    return _build("resnet32", pretrained, **kwargs)


@register_model
def resnet44(pretrained: bool = False, **kwargs: Any) -> nn.Module:
    """Build the 44-layer network."""
    return _build("resnet44", pretrained, **kwargs)


@register_model
def resnet56(pretrained: bool = False, **kwargs: Any) -> nn.Module:
    """Build the 56-layer network."""
    return _build("resnet56", pretrained, **kwargs)


@register_model
def resnet34_cifar(pretrained: bool = False, **kwargs: Any) -> nn.Module:
    """Build the wide 34-layer network for 32-pixel pictures."""
    network: nn.Module = build_model_with_cfg(_wide_resnet, "resnet34_cifar", pretrained, **kwargs)
    return network
