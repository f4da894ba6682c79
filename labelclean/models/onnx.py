"""A saved model as ONNX: pictures in, probabilities out, checked against PyTorch's answer."""

import importlib.util
import json
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelclean.atomic import atomic_path
from labelclean.errors import ConfigError, OutputError
from labelclean.models.embedder import Embedder
from labelclean.models.saved import SavedModel, load_model

NEEDED = ("onnx", "onnxruntime", "onnxscript")
INPUT_PICTURES, INPUT_FEATURES, OUTPUT = "pictures", "features", "probabilities"
_TOLERANCE = 1e-4


class Whole(nn.Module):
    """Everything between a picture, or a feature vector, and the probabilities.

    Args:
        saved: The model.
    """

    def __init__(self, saved: SavedModel) -> None:
        super().__init__()
        frozen = saved.mode == "head" and saved.backbone is not None
        self.embedder = Embedder(saved.backbone, saved.stages) if frozen else None  # type: ignore[arg-type]
        self.scaling, self.model = saved.scaling, saved.model

    def forward(self, samples: Tensor) -> Tensor:
        """Give (B, C) probabilities of (B, S, S, 3) uint8 pictures or (B, D) features."""
        values = samples if self.embedder is None else self.embedder(samples)
        if self.scaling is not None:
            values = self.scaling(values)
        probs: Tensor = torch.softmax(self.model(values).logits.float(), dim=1)
        return probs


def export_onnx(run_folder: Path, target: Path) -> float:
    """Write the model of a run as one ONNX file.

    Input `pictures`: (B, S, S, 3) uint8 RGB, the largest centred square of the picture resized to
    S pixels; the network normalises by itself. A model of feature vectors takes `features`:
    (B, D) float32, unscaled. Output `probabilities`: (B, C) float32. The names of the classes, in
    order, are in the file's metadata under `labels`.

    Args:
        run_folder: A run's folder, or its folder retrain/.
        target: The file to write.

    Returns:
        The largest difference between ONNX Runtime's and PyTorch's probabilities.

    Raises:
        ConfigError: The packages of the extra `onnx` are not installed.
        DataError: The folder holds no model of ours.
        OutputError: The network cannot be exported, or ONNX Runtime answers differently.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"ONNX export needs {', '.join(missing)}; install with `pip install "
            "'labelclean[onnx]'`."
        )
    saved = load_model(run_folder / "model")
    whole = Whole(saved).eval()
    samples = _samples(saved)
    name = INPUT_FEATURES if saved.backbone is None else INPUT_PICTURES
    with atomic_path(target) as temporary:
        write_network(whole, samples, name, OUTPUT, temporary)
        _dress(temporary, saved)
        difference = _difference(whole, samples, name, temporary)
        if not difference <= _TOLERANCE:
            raise OutputError(
                f"ONNX Runtime answers otherwise than PyTorch (largest difference of a probability "
                f"{difference:.2g}, allowed {_TOLERANCE:.0e}); {target} was not written. Another "
                "version of torch or onnxscript may help."
            )
    return difference


def _samples(saved: SavedModel) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    if saved.backbone is None:
        width = 0 if saved.scaling is None else len(saved.scaling.mean)
        return torch.randn(3, width, generator=generator)
    size = saved.backbone.spec.size
    return torch.randint(0, 256, (3, size, size, 3), generator=generator).to(torch.uint8)


def write_network(network: nn.Module, samples: Tensor, name: str, output: str, path: Path) -> None:
    """Write a network as one ONNX file that takes any number of samples.

    Args:
        network: In evaluation mode.
        samples: (B, ...) some to trace it with.
        name: What the file calls its input.
        output: And its output.
        path: The file.

    Raises:
        OutputError: The network cannot be exported.
    """
    talkative = logging.getLogger("torch.onnx")
    level = talkative.level
    talkative.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.inference_mode():
            # What torch and onnxscript say about their own future is no news to the user.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network,
                (samples,),
                path,
                input_names=[name],
                output_names=[output],
                dynamic_shapes=({0: torch.export.Dim("batch", min=1)},),
                dynamo=True,
                external_data=False,
                verbose=False,
            )
    except (torch.onnx.OnnxExporterError, RuntimeError, NotImplementedError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise OutputError(f"this network cannot be exported as ONNX: {first}") from error
    finally:
        talkative.setLevel(level)


def _dress(path: Path, saved: SavedModel) -> None:
    """Say what is inside, and remove the paths of this machine that the exporter notes."""
    import onnx  # noqa: PLC0415 (an extra)

    model = onnx.load(path)
    model.producer_name = "labelclean"
    for graph in (model.graph, *model.functions):
        _undress(graph)
    spec = None if saved.backbone is None else saved.backbone.spec
    facts = {
        "labels": list(saved.classes),
        "input": None
        if spec is None
        else {
            "size": spec.size,
            "crop": "largest centred square",
            "interpolation": spec.interpolation,
            "layout": "NHWC uint8 RGB",
        },
    }
    onnx.helper.set_model_props(model, {key: json.dumps(value) for key, value in facts.items()})
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _undress(part: Any) -> None:
    part.doc_string = ""
    del part.metadata_props[:]
    for entry in (*part.node, *getattr(part, "initializer", ()), *getattr(part, "value_info", ())):
        entry.doc_string = ""
        del entry.metadata_props[:]


def _difference(whole: Whole, samples: Tensor, name: str, path: Path) -> float:
    """Compare on another number of samples than the export saw: the batch must be free."""
    import onnxruntime  # noqa: PLC0415 (an extra)

    more = torch.cat([samples, samples.flip(0)])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        path.read_bytes(), options, providers=["CPUExecutionProvider"]
    )
    answer: NDArray[np.float32] = session.run([OUTPUT], {name: more.numpy()})[0]
    with torch.inference_mode():
        expected = whole(more).numpy()
    return float(np.abs(answer - expected).max())
