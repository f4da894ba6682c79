"""Backbones by name: timm's, the CIFAR ResNets, the embedded default."""

import hashlib
import importlib
import socket
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import huggingface_hub
from torch import nn

from labelclean.catalogue import nearest_name
from labelclean.errors import ConfigError, DataError, TrainingError
from labelclean.models import lite0
from labelclean.models.own import (
    check_own,
    is_own,
    own_network,
    require_features,
    stored_own_network,
)

OFFLINE = "use `--backbone lite0`, whose weights come with the package, or `local-dir:FOLDER`"
SMALL_PICTURES = 48
SMALL_PICTURES_SIZE = 160


@dataclass(frozen=True, slots=True)
class InputSpec:
    """What the network expects to see.

    Args:
        size: Side of the square, in pixels.
        mean: Mean per channel, for pixels in [0, 1].
        std: Standard deviation per channel, for pixels in [0, 1].
        interpolation: `bicubic`, `bilinear` or `nearest`.
    """

    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: str


@dataclass(frozen=True, slots=True)
class Backbone:
    """A network without its classifier.

    Args:
        name: The name it was asked for by.
        network: Gives (B, width) features for (B, 3, S, S) normalised pictures.
        spec: What it expects to see.
        weights: SHA-256 of its parameters and buffers, as hexadecimal text.
    """

    name: str
    network: nn.Module
    spec: InputSpec
    weights: str


def build_backbone(
    name: str, *, pretrained: bool, image_size: int | None = None, picture_side: int | None = None
) -> Backbone:
    """Build a backbone.

    Args:
        name: See `ModelSettings.backbone`.
        pretrained: Load its published weights.
        image_size: Side of its input; None: its own size, or what fits the pictures.
        picture_side: Typical shorter side of the pictures, in pixels, if known.

    Raises:
        ConfigError: No such backbone, or it has no weights or no such input size.
        TrainingError: The weights cannot be had.
    """
    own = is_own(name)
    network = own_network(name) if own else _build_network(name, pretrained, image_size)
    config = _timm().data.resolve_model_data_config(network)
    usual = int(config["input_size"][-1])
    fixed = bool(getattr(network, "pretrained_cfg", {}).get("fixed_input_size", False))
    spec = InputSpec(
        size=image_size or _fitting_size(usual, fixed or own, picture_side),
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
        interpolation=str(config["interpolation"]),
    )
    if own:
        require_features(name, network, spec.size)
    return Backbone(name, network, spec, weights_digest(network))


def rebuild_backbone(name: str, architecture: str, spec: InputSpec, weights: str) -> Backbone:
    """Build the network of a stored model, whose weights are still to be filled in.

    Args:
        name: The name it was first asked for by.
        architecture: timm's name of the network; a hub is never asked.
        spec: What it expects to see.
        weights: SHA-256 of the weights it began with.

    Raises:
        DataError: This timm has no such network.
    """
    if is_own(architecture):
        return Backbone(name, stored_own_network(architecture), spec, weights)
    if not _timm().is_model(architecture):
        raise DataError(
            f"the stored model is a {architecture!r}, which this version of timm does not know; "
            "install the version it was trained with (run.json names it)."
        )
    network = _build_network(architecture, False, spec.size)
    return Backbone(name, network, spec, weights)


def check_backbone(name: str, pretrained: bool) -> None:
    """Refuse a backbone that cannot be built, before anything dear is done."""
    if is_own(name):
        check_own(name)
        return
    if name == "lite0" or name.startswith(("hf-hub:", "hf_hub:")):
        return
    if name.startswith("local-dir:"):
        folder = Path(name.removeprefix("local-dir:"))
        if not (folder / "config.json").is_file():
            raise ConfigError(
                f"backbone {name!r}: {folder} has no config.json; give the folder of a model that "
                "timm saved (config.json and model.safetensors)."
            )
        return
    timm = _timm()
    architecture = name.partition(".")[0]
    if not timm.is_model(architecture):
        known = ["lite0", *timm.list_models()]
        raise ConfigError(
            f"unknown backbone {name!r}.{nearest_name(name, known)} Known: lite0, "
            f"{', '.join(timm.list_models(module='cifar_resnet'))}, every timm model, "
            "hf-hub:OWNER/NAME, local-dir:FOLDER."
        )
    if pretrained:
        config = timm.get_pretrained_cfg(name, allow_unregistered=True)
        if config is None or not config.has_weights:
            raise ConfigError(
                f"backbone {name!r} has no published weights; train it with `--mode scratch`, or "
                "set model.pretrained=false."
            )


def weights_digest(network: nn.Module) -> str:
    """Hash the names and values of every parameter and buffer."""
    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _timm() -> ModuleType:
    """Load timm, which takes seconds that those who bring features or probabilities need not wait.

    The CIFAR ResNets are registered in it.
    """
    import timm  # noqa: PLC0415

    importlib.import_module("labelclean.models.cifar_resnet")
    return timm


def _fitting_size(own: int, fixed: bool, picture_side: int | None) -> int:
    # For 32-pixel pictures 160 pixels gave the best features; the full 224 cost twice the time.
    small = picture_side is not None and picture_side < SMALL_PICTURES
    return min(own, SMALL_PICTURES_SIZE) if small and not fixed else own


def _build_network(name: str, pretrained: bool, image_size: int | None) -> nn.Module:
    check_backbone(name, pretrained)
    embedded = name == "lite0"
    architecture = lite0.ARCHITECTURE if embedded else name
    if pretrained and not embedded:
        _require_hub(name)
    timm = _timm()
    extra: dict[str, Any] = {}
    config = timm.get_pretrained_cfg(architecture) if timm.is_model(architecture) else None
    if image_size and config is not None and config.fixed_input_size:
        extra["img_size"] = image_size
    try:
        network: nn.Module = timm.create_model(
            architecture, pretrained=pretrained and not embedded, **extra
        )
    except OSError as error:
        raise TrainingError(_unreachable(name)) from error
    except (RuntimeError, TypeError, ValueError) as error:
        raise ConfigError(f"backbone {name!r} cannot be built: {error}") from error
    if embedded and pretrained:
        lite0.load_lite0(network)
    network.reset_classifier(0)  # type: ignore[operator]
    return network


def _unreachable(name: str) -> str:
    return (
        f"the weights of {name!r} are not on this machine and the hub is out of reach; {OFFLINE}."
    )


def _require_hub(name: str) -> None:
    """Say at once that a hub is out of reach; its own client tries for most of a minute."""
    if name.startswith("local-dir:"):
        return
    config = None if ":" in name else _timm().get_pretrained_cfg(name)
    repository = config.hf_hub_id if config is not None else name.partition(":")[2]
    if not repository:
        return
    files = ("model.safetensors", "pytorch_model.bin")
    found = (huggingface_hub.try_to_load_from_cache(repository, file) for file in files)
    if not any(isinstance(path, str) for path in found) and not hub_answers():
        raise TrainingError(_unreachable(name))


def hub_answers(timeout: float = 5.0) -> bool:
    """Tell whether the hub's host takes connections."""
    if huggingface_hub.constants.HF_HUB_OFFLINE:
        return False
    url = urlsplit(huggingface_hub.constants.ENDPOINT)
    try:
        port = url.port or (443 if url.scheme == "https" else 80)
        socket.create_connection((url.hostname or "", port), timeout=timeout).close()
    except OSError:
        return False
    return True
