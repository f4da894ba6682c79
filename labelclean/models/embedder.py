"""Frozen backbones as feature extractors: pictures in, pooled features of the last stages out."""

import copy
import threading
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from labelclean.models.backbones import Backbone, InputSpec
from labelclean.models.folding import fold_batch_norms


class Pixels(nn.Module):
    """Turns (B, S, S, 3) uint8 pictures into normalised (B, 3, S, S) channels-last input.

    Pictures travel as bytes, a quarter of what floats weigh, and become numbers in the network.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, spec: InputSpec) -> None:
        super().__init__()
        shape = (1, 3, 1, 1)
        self.register_buffer("mean", torch.tensor(spec.mean).view(shape) * 255)
        self.register_buffer("scale", 1 / (torch.tensor(spec.std).view(shape) * 255))

    def forward(self, pictures: Tensor) -> Tensor:
        """Normalise; the permuted view of (B, S, S, 3) already is channels-last."""
        return (pictures.permute(0, 3, 1, 2).to(self.mean.dtype) - self.mean) * self.scale


class _Seen(threading.local):
    """What the stages gave in the forward pass of this thread."""

    def __init__(self) -> None:
        self.pooled: dict[str, Tensor] = {}


class Embedder(nn.Module):
    """A frozen backbone that gives its pooled last layer and those of its last stages.

    Args:
        backbone: The network, which stays untouched.
        stages: How many of the last stages add their spatial mean; one that only repeats the
            last layer is left out.

    Attributes:
        width: Number of features D.
        layers: What the features are, in order, for the cache's key.
    """

    def __init__(self, backbone: Backbone, stages: int) -> None:
        super().__init__()
        self.pixels = Pixels(backbone.spec)
        size = backbone.spec.size
        generator = torch.Generator().manual_seed(0)
        pictures = torch.randint(0, 256, (2, size, size, 3), generator=generator).to(torch.uint8)
        network = copy.deepcopy(backbone.network).eval().requires_grad_(False)
        probe = self.pixels(pictures)
        self.network = fold_batch_norms(network, probe).to(memory_format=torch.channels_last)
        self._channels_last_output = str(getattr(network, "output_fmt", "NCHW")) == "NHWC"
        self._seen = _Seen()
        self.layers: tuple[str, ...] = ()
        self._watch(stage_names(self.network, stages))
        self.eval()
        with torch.inference_mode():
            last = self.network(probe)
            self.layers = tuple(
                name for name, value in self._seen.pooled.items() if not _repeats(value, last)
            )
            self.width = self(pictures).shape[1]
        self._seen.pooled.clear()

    def _watch(self, names: list[str]) -> None:
        for name in names:

            def keep(_: nn.Module, __: object, result: object, name: str = name) -> None:
                if isinstance(result, Tensor):
                    self._seen.pooled[name] = self._pool(result)

            self.network.get_submodule(name).register_forward_hook(keep)

    def _pool(self, value: Tensor) -> Tensor:
        if value.ndim == 4:
            return value.mean((1, 2) if self._channels_last_output else (2, 3))
        return value.mean(1) if value.ndim == 3 else value.flatten(1)

    def forward(self, pictures: Tensor) -> Tensor:
        """Give (B, D) features of (B, S, S, 3) uint8 pictures."""
        last = self.network(self.pixels(pictures))
        parts = [self._seen.pooled.pop(name) for name in self.layers]
        self._seen.pooled.clear()
        return torch.cat([*parts, last.flatten(1)], dim=1).float()


def stage_names(network: nn.Module, count: int) -> list[str]:
    """Name the last `count` stages of a timm network.

    timm lists one module per resolution. Where these are members of a sequence, the sequence is
    the network's own idea of its stages, which is finer (EfficientNets have seven, not five).
    """
    info = getattr(network, "feature_info", None)
    if info is None or count == 0:
        return []
    entries: list[Mapping[str, str]] = info.get_dicts() if hasattr(info, "get_dicts") else info
    known = dict(network.named_modules())
    names = [entry["module"] for entry in entries if entry.get("module") in known]
    if not names:
        return []
    parent, _, position = names[-1].rpartition(".")
    if parent and position.isdigit() and isinstance(known[parent], nn.Sequential | nn.ModuleList):
        names = [f"{parent}.{child}" for child, _ in known[parent].named_children()]
    return names[-count:]


def _repeats(value: Tensor, last: Tensor) -> bool:
    return value.shape == last.shape and torch.allclose(value, last, rtol=1e-4, atol=1e-5)
