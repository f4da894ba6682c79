"""config.json of a saved model, checked before anything is built from it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labelclean import __version__
from labelclean.data.manifest import Label
from labelclean.errors import DataError, shortlist
from labelclean.models.backbones import InputSpec
from labelclean.models.settings import MODES

SCHEMA = 1
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LARGEST = 2**20


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Everything but the weights.

    Args:
        classes: (C,) the labels, text or integers, in the order of the outputs.
        mode: How the model was trained, one of MODES.
        width: Features the head sees.
        hidden: Units of the head's hidden layer; 0: none.
        attention: Whether the head has an attention output.
        stages: In head mode, how many stages add their pooled output to the features.
        backbone: The name the backbone was asked for by; None: the model takes features.
        architecture: timm's name of the network; None for features.
        spec: What the network expects to see; None for features.
        weights: SHA-256 of the backbone's weights before training; None for features.
        stored: Whether the backbone's weights are in the file.
        sha256: Of model.safetensors.
        notes: Plain data about how the model came to be.
    """

    classes: tuple[Label, ...]
    mode: str
    width: int
    hidden: int
    attention: bool
    stages: int
    backbone: str | None
    architecture: str | None
    spec: InputSpec | None
    weights: str | None
    stored: bool
    sha256: str
    notes: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Format as timm and Hugging Face do, with our own section at the end."""
        spec = self.spec
        content = {
            "architecture": self.architecture,
            "num_classes": len(self.classes),
            "num_features": self.width,
            "label_names": list(self.classes),
            "label_type": "integer" if isinstance(self.classes[0], int) else "text",
            "pretrained_cfg": None
            if spec is None
            else {
                "input_size": [3, spec.size, spec.size],
                "mean": list(spec.mean),
                "std": list(spec.std),
                "interpolation": spec.interpolation,
                "crop_pct": 1.0,
                "crop_mode": "center",
            },
            "labelclean": {
                "schema": SCHEMA,
                "tool": f"labelclean {__version__}",
                "mode": self.mode,
                "backbone": self.backbone,
                "stages": self.stages,
                "hidden": self.hidden,
                "attention": self.attention,
                "backbone_stored": self.stored,
                "pretrained_sha256": self.weights,
                "model_sha256": self.sha256,
                "notes": dict(self.notes),
            },
        }
        return (json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n").encode()


def read_config(path: Path) -> ModelConfig:
    """Read and check a config.json.

    Raises:
        DataError: It is missing, damaged or not ours; all faults in one message.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror or error}); name the folder of a finished run."
        ) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON ({error}); audit the data again.") from error
    own = content.get("labelclean") if isinstance(content, dict) else None
    if not isinstance(own, dict) or own.get("schema") != SCHEMA:
        raise DataError(
            f"{path} does not describe a model saved by this version of labelclean; audit the "
            "data again, or use the version that wrote it."
        )
    faults = _faults(content, own)
    if faults:
        raise DataError(f"{path} is damaged: {shortlist(faults)}. Audit the data again.")
    seen = content.get("pretrained_cfg")
    return ModelConfig(
        classes=tuple(content["label_names"]),
        mode=own["mode"],
        width=content["num_features"],
        hidden=own["hidden"],
        attention=own["attention"],
        stages=own["stages"],
        backbone=own.get("backbone"),
        architecture=content.get("architecture"),
        spec=None
        if seen is None
        else InputSpec(
            size=seen["input_size"][-1],
            mean=tuple(seen["mean"]),
            std=tuple(seen["std"]),
            interpolation=seen["interpolation"],
        ),
        weights=own.get("pretrained_sha256"),
        stored=own["backbone_stored"],
        sha256=own["model_sha256"],
        notes=own["notes"],
    )


def _faults(content: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    names, seen = content.get("label_names"), content.get("pretrained_cfg")
    pictures = content.get("architecture") is not None
    right = {
        "label_names": _are_labels(names),
        "num_classes": isinstance(names, list) and content.get("num_classes") == len(names),
        "num_features": _is_count(content.get("num_features"), 1),
        "labelclean.mode": own.get("mode") in (MODES if pictures else ("head",)),
        "labelclean.stages": _is_count(own.get("stages"), 0),
        "labelclean.hidden": _is_count(own.get("hidden"), 0),
        "labelclean.attention": isinstance(own.get("attention"), bool),
        "labelclean.backbone_stored": isinstance(own.get("backbone_stored"), bool),
        "labelclean.model_sha256": _is_sha256(own.get("model_sha256")),
        "labelclean.notes": isinstance(own.get("notes"), dict),
        "architecture": not pictures or isinstance(content["architecture"], str),
        "labelclean.backbone": isinstance(own.get("backbone"), str) == pictures,
        "labelclean.pretrained_sha256": _is_sha256(own.get("pretrained_sha256")) == pictures,
        "pretrained_cfg": _is_spec(seen) if pictures else seen is None,
    }
    return [name for name, fine in right.items() if not fine]


def _is_count(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= _LARGEST


def _is_sha256(value: object) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _are_labels(names: object) -> bool:
    if not isinstance(names, list) or len(names) < 2:
        return False
    kinds = {type(name) for name in names}
    return kinds in ({str}, {int}) and len(set(names)) == len(names)


def _is_spec(seen: object) -> bool:
    if not isinstance(seen, dict):
        return False
    size = seen.get("input_size")
    triples = (seen.get("mean"), seen.get("std"))
    return (
        isinstance(size, list)
        and len(size) == 3
        and _is_count(size[1], 8)
        and size == [3, size[1], size[1]]
        and size[1] <= 4096
        and all(
            isinstance(part, list) and len(part) == 3 and all(type(x) in (int, float) for x in part)
            for part in triples
        )
        and all(x > 0 for x in seen["std"])
        and isinstance(seen.get("interpolation"), str)
    )
