"""A classifier of pictures, as an estimator needs it; the only file here that loads image code."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from labelclean.arrays import Floats
from labelclean.data.images import DEFAULT_LIMITS
from labelclean.data.paths import Confinement
from labelclean.data.scan import Scan, scan_images
from labelclean.data.sources import ArrayImages, FileImages, ImageSource
from labelclean.errors import ConfigError, DataError, shortlist
from labelclean.estimators.inputs import Labelled
from labelclean.estimators.tabular import head_facts, hold_out, restore_head
from labelclean.losses import RobustLoss
from labelclean.models.backbones import Backbone, build_backbone
from labelclean.models.classifier import PictureClassifier
from labelclean.models.embedder import Embedder
from labelclean.models.head import FeatureScaling, Head
from labelclean.models.settings import ModelSettings
from labelclean.options import cache_folder, progress_bar
from labelclean.training.cache import FeatureCache
from labelclean.training.features import Extractor, find_features
from labelclean.training.fit import Fitter
from labelclean.training.inference import embed
from labelclean.training.pictures import Pictures
from labelclean.training.runtime import Runtime
from labelclean.training.samples import Samples
from labelclean.training.settings import TrainSettings


@dataclass(frozen=True, slots=True)
class PictureModel:
    """A trained classifier of pictures.

    Args:
        classifier: The head on frozen features, or the whole network with its head.
        scaling: What frozen features go through first; None for a whole network.
        backbone: The network and what it expects to see.
        stages: How many stages the frozen features come from.
        trained: Whether the network itself was trained.
        threads: Threads that decode and compute.
    """

    classifier: nn.Module
    scaling: FeatureScaling | None
    backbone: Backbone
    stages: int
    trained: bool
    threads: int

    def logits(self, pictures: NDArray[Any]) -> Floats:
        """Give (N, C) logits of pictures or paths."""
        with torch.inference_mode():
            rows = torch.from_numpy(self._pooled(pictures)).float()
            answer: Floats = self._head(rows).logits.double().numpy()
        return answer

    def embed(self, pictures: NDArray[Any]) -> Floats:
        """Give what the last layer sees: pooled features, or the hidden layer's answer to them."""
        pooled = self._pooled(pictures)
        if not len(self._head.body):
            return pooled
        with torch.inference_mode():
            answer: Floats = self._head.body(torch.from_numpy(pooled).float()).double().numpy()
        return answer

    def _pooled(self, pictures: NDArray[Any]) -> Floats:
        """Give what the head sees: (N, D) pooled features."""
        source = source_of(pictures)
        scan = scan_images(source, workers=0)
        refuse_unreadable(scan)
        rows = np.arange(len(source))
        runtime = Runtime(torch.device("cpu"), threads=self.threads)
        if self.trained:
            loader = Pictures(source, rows, self.backbone.spec, threads=self.threads, keep_bytes=0)
            return embed(self.classifier, loader, runtime).astype(np.float64)
        extractor = Extractor(
            Embedder(self.backbone, self.stages), self.backbone, runtime, self.threads
        )
        limit = TrainSettings().cache_gigabytes * 2**30
        store = FeatureCache(cache_folder(None), extractor.key, extractor.embedder.width, limit)
        found = find_features(extractor, source, rows, scan.digest, store)
        answer = np.empty(found.shape)
        with torch.inference_mode():
            for tile, features in found.tiles():
                answer[tile] = self._scaling(torch.from_numpy(features)).double().numpy()
        return answer

    @property
    def _head(self) -> Head:
        head: Any = self.classifier.head if self.trained else self.classifier
        return cast(Head, head)

    @property
    def _scaling(self) -> FeatureScaling:
        if self.scaling is None:
            raise TypeError("a whole network has no scaling of features")
        return self.scaling

    @property
    def width(self) -> int:
        """Number of columns of an embedding."""
        return self._head.classifier.in_features

    def tensors(self) -> dict[str, torch.Tensor]:
        """Give all numbers it consists of but the published weights of a frozen backbone."""
        if self.trained:
            return dict(self.classifier.state_dict())
        own = {f"head.{name}": value for name, value in self.classifier.state_dict().items()}
        return own | {f"scaling.{n}": v for n, v in self._scaling.state_dict().items()}

    def facts(self) -> dict[str, object]:
        """Give what is needed beside the numbers to build it again."""
        return {
            "kind": "pictures",
            "head": head_facts(self._head),
            "backbone": self.backbone.name,
            "image_size": self.backbone.spec.size,
            "weights": self.backbone.weights,
            "stages": self.stages,
            "trained": self.trained,
            "threads": self.threads,
        }

    @classmethod
    def restore(
        cls, facts: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
    ) -> "PictureModel":
        """Build it again from `facts` and `tensors`.

        Raises:
            DataError: The backbone's weights are no longer what they were.
        """
        trained = bool(facts["trained"])
        with torch.random.fork_rng():
            backbone = build_backbone(
                facts["backbone"], pretrained=not trained, image_size=facts["image_size"]
            )
        head = restore_head(facts["head"], tensors, torch.float32)
        scaling = None
        classifier: nn.Module = head
        if trained:
            classifier = PictureClassifier(backbone, head)
            classifier.load_state_dict(dict(tensors))
        else:
            if backbone.weights != facts["weights"]:
                raise DataError(
                    f"the weights of backbone {backbone.name!r} are not those the model was "
                    "trained with; install the version they came with, or fit again."
                )
            scaling = FeatureScaling(len(tensors["scaling.mean"]))
            scaling.mean.copy_(tensors["scaling.mean"])
            scaling.scale.copy_(tensors["scaling.scale"])
        return cls(classifier.eval(), scaling, backbone, facts["stages"], trained, facts["threads"])


def source_of(pictures: NDArray[Any]) -> ImageSource:
    """Open pixels, or files by paths from the current folder."""
    if pictures.dtype == np.uint8:
        return ArrayImages(pictures)
    bounds = Confinement(Path.cwd(), True)
    return FileImages(pictures.tolist(), bounds, DEFAULT_LIMITS)


def refuse_unreadable(scan: Scan) -> None:
    """Name every picture that cannot be read."""
    bad = np.flatnonzero(~scan.readable).tolist()
    if bad:
        named = shortlist((f"row {row}: {scan.reason[row]}" for row in bad), 5)
        raise DataError(f"{len(bad)} of {len(scan.readable)} pictures cannot be read: {named}.")


def make_picture_fitter(
    pictures: NDArray[Any],
    known: Labelled,
    settings: TrainSettings,
    *,
    model: ModelSettings,
    device: str,
    threads: int,
    validation: float,
    seed: int,
) -> Fitter:
    """Look at all pictures and get ready to train; features of frozen backbones are cached.

    Args:
        pictures: (N, H, W[, C]) pixels or (N,) paths.
        known: Labels and weights.
        settings: What the user asked for.
        model: The backbone and what stands behind it.
        device: `auto`, `cpu`, `cuda` or `mps`.
        threads: Threads that decode and compute.
        validation: Share of the rows held out to tell when to stop; 0: train to the end.
        seed: Seed of every draw.

    Raises:
        DataError: Pictures cannot be read.
        ConfigError: There is no such device or backbone.
    """
    source = source_of(pictures)
    scan = scan_images(source, workers=0)
    refuse_unreadable(scan)
    runtime = Runtime(device_of(device), seed=seed, threads=threads)
    mode = settings.mode
    if mode == "auto":
        mode = "head" if runtime.device.type == "cpu" else "finetune"
    rows, others = hold_out(known.label, validation, seed)
    order = np.concatenate([rows, others])
    asked = replace(settings, early_stop="noisy" if len(others) else "off")
    samples = Samples(
        source=source,
        rows=order,
        digest=scan.digest[order],
        trained=len(rows),
        label=known.label[order],
        weight=known.weight[rows].astype(np.float32),
        sample_id=order.astype(str).astype(object),
        num_classes=known.num_classes,
        picture_side=int(np.median(np.minimum(scan.width, scan.height))),
        validation={"noisy": np.arange(len(rows), len(order))},
    )
    return Fitter(
        samples, model, asked.resolved(mode, len(rows)), runtime,
        decoders=threads, cache=cache_folder(None), workspace=None,
    )  # fmt: skip


def fit_pictures(fitter: Fitter, loss: RobustLoss, verbose: int = 0) -> PictureModel:
    """Train with a new loss."""
    fitted = fitter.fit(loss, partial(progress_bar, shown=verbose > 0))
    if fitted.backbone is None:
        raise TypeError("pictures need a backbone")
    trained = fitter.training.mode != "head"
    classifier = copy.deepcopy(fitted.model).cpu().eval().requires_grad_(False)
    return PictureModel(
        classifier, fitted.scaling, fitted.backbone, fitter.settings.stages, trained,
        fitter.decoders,
    )  # fmt: skip


def device_of(name: str) -> torch.device:
    """Find a device by name; `auto`: a GPU of CUDA, else the processor."""
    here = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name == "auto":
        return torch.device("cuda" if here["cuda"] else "cpu")
    if not here.get(name):
        raise ConfigError(
            f"device is {name!r}; this machine has: auto, "
            f"{', '.join(kind for kind, present in here.items() if present)}."
        )
    return torch.device(name)
