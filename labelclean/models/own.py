"""Networks of the user's own: a torch module or a timm model object as backbone.

They live in this process only. A stored run or model names such a network, and never loads code
for it: whoever uses it hands the object over again.
"""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from labelclean.errors import ConfigError, DataError

PREFIX = "own:"
_HANDED_OVER: dict[str, nn.Module] = {}
_FAULTS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NameError, NotImplementedError,
    RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""What code that is not ours may raise; all of it becomes a sentence."""


class PooledNetwork(nn.Module):
    """A foreign network whose answer becomes (B, D) features: maps and tokens are averaged.

    Args:
        network: The network.
        name: What it is called in stored models.
    """

    def __init__(self, network: nn.Module, name: str) -> None:
        super().__init__()
        self.network = network
        self.pretrained_cfg: Mapping[str, object] = {"architecture": name}

    def forward(self, pictures: Tensor) -> Tensor:
        """Give (B, D) features of (B, 3, S, S) normalised pictures."""
        answer: Tensor = self.network(pictures)
        if not isinstance(answer, Tensor) or answer.ndim not in (2, 3, 4):
            shape = tuple(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
            raise ValueError(
                f"it gives {shape}, and features are (B, D), (B, L, D) or (B, D, H, W)"
            )
        if answer.ndim == 4:
            return answer.mean((2, 3))
        return answer.mean(1) if answer.ndim == 3 else answer


def backbone_name(given: Any) -> str:
    """Give the name of a backbone; an object is remembered under its class's name.

    Args:
        given: A name, a torch module or a timm model.

    Raises:
        ConfigError: It is something else, or cannot be copied.
    """
    if isinstance(given, str):
        return given
    if not isinstance(given, nn.Module):
        raise ConfigError(
            f"backbone is {type(given).__name__}; give a name, a torch nn.Module or a timm model."
        )
    name = f"{PREFIX}{type(given).__name__}"
    try:
        network = copy.deepcopy(given).cpu().float().eval()
    except _FAULTS as error:
        raise ConfigError(f"backbone {name!r} cannot be copied: {error}") from error
    if not any(True for _ in network.parameters()):
        raise ConfigError(f"backbone {name!r} has no parameters; give a network.")
    _HANDED_OVER[name] = network.requires_grad_(True)
    return name


def is_own(name: str) -> bool:
    """Tell whether a name stands for a network that somebody handed over."""
    return name.startswith(PREFIX)


def check_own(name: str) -> None:
    """Refuse a name nobody handed a network over for.

    Raises:
        ConfigError: As said.
    """
    if name not in _HANDED_OVER:
        raise ConfigError(
            f"backbone {name!r} is a network of yours, and code is never loaded from a recipe or "
            "a run: hand the object over in Python, audit(..., backbone=network), or "
            "open_run(folder, backbone=network) for a run that has it."
        )


def own_network(name: str) -> nn.Module:
    """Give a copy of a network that was handed over, without a classifier if timm knows how."""
    check_own(name)
    network = copy.deepcopy(_HANDED_OVER[name])
    if hasattr(network, "reset_classifier") and getattr(network, "pretrained_cfg", None):
        network.reset_classifier(0)  # type: ignore[operator]
        return network
    return PooledNetwork(network, name)


def stored_own_network(name: str) -> nn.Module:
    """Give the network of a stored model.

    Raises:
        DataError: Nobody handed it over in this process.
    """
    if name not in _HANDED_OVER:
        raise DataError(
            f"the stored model stands on a network of yours, {name.removeprefix(PREFIX)}, and code "
            "is never loaded from a run: hand it over in Python, "
            "open_run(folder, backbone=network)."
        )
    return own_network(name)


def require_features(name: str, network: nn.Module, size: int) -> None:
    """Ask a network about two pictures, so that what cannot be used is refused at once.

    Raises:
        ConfigError: It raises, or gives no features.
    """
    try:
        with torch.inference_mode():
            answer = network.eval()(torch.zeros(2, 3, size, size))
            fine = answer.flatten(1).shape[0] == 2 and bool(answer.isfinite().all())
    except _FAULTS as error:
        raise ConfigError(
            f"backbone {name!r} cannot look at (B, 3, {size}, {size}) pictures: {error}. Set "
            "model.image_size if it wants another size."
        ) from error
    if not fine:
        raise ConfigError(
            f"backbone {name!r} gives no finite features, one row for each of two pictures."
        )
