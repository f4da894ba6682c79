"""What a saved model says about samples it has never seen."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from labelclean.data.images import ImageLimits
from labelclean.data.manifest import Label, Manifest
from labelclean.data.scan import Scan
from labelclean.data.settings import DataSettings
from labelclean.data.sources import ImageSource, open_source
from labelclean.errors import DataError
from labelclean.models.backbones import Backbone
from labelclean.models.embedder import Embedder
from labelclean.models.saved import SavedModel
from labelclean.options import RunOptions
from labelclean.training.cache import FeatureCache
from labelclean.training.features import (
    Extractor,
    FeatureTable,
    GivenFeatures,
    find_features,
)
from labelclean.training.inference import embed, predict_probs
from labelclean.training.pictures import Pictures
from labelclean.training.runtime import Runtime, one_thread_each
from labelclean.training.settings import TrainSettings
from labelclean.training.task import Features
from labelclean.workflows.observe import feature_cache, look


@dataclass(frozen=True, slots=True)
class Predictions:
    """What a model says about N rows.

    Args:
        manifest: The samples.
        classes: (C,) the labels in the order of `probs`.
        readable: (N,) bool.
        reason: (N,) text, why a row is not readable; empty where it is.
        probs: (N, C) float32; NaN where not readable.
        embedding: (N, D) float32, what the classifier saw; NaN where not readable; None: not asked.
    """

    manifest: Manifest
    classes: tuple[Label, ...]
    readable: NDArray[np.bool_]
    reason: NDArray[np.object_]
    probs: NDArray[np.float32]
    embedding: NDArray[np.float32] | None


def predict_manifest(
    saved: SavedModel,
    manifest: Manifest,
    settings: DataSettings,
    runtime: Runtime,
    *,
    options: RunOptions = RunOptions(),
    embeddings: bool = False,
) -> Predictions:
    """Look at every sample and ask the model; rows that cannot be read keep their place.

    Args:
        saved: The model.
        manifest: The samples; labels are not looked at.
        settings: Caps of a picture, and processes that decode.
        runtime: Where to compute.
        options: Cache, progress and messages.
        embeddings: Give also what the classifier saw.

    Raises:
        DataError: The samples are not of the model's kind, or none can be read.
    """
    _refuse_other_kind(saved, manifest)
    with options.progress("decode") as on_progress:
        scan = look(manifest, settings, on_progress)
    rows = np.flatnonzero(scan.readable)
    if not len(rows):
        raise DataError(
            f"{manifest.source}: none of {len(manifest)} rows can be read, for example row 0 "
            f"({manifest.path[0]}): {scan.reason[0]}. `labelclean check` lists them all."
        )
    said, seen = answers(
        saved, manifest, scan, rows, settings, runtime, options=options, embeddings=embeddings
    )
    return Predictions(
        manifest,
        saved.classes,
        scan.readable,
        scan.reason,
        spread(said, rows, len(manifest)),
        None if seen is None else spread(seen, rows, len(manifest)),
    )


def answers(
    saved: SavedModel,
    manifest: Manifest,
    scan: Scan,
    rows: NDArray[np.int64],
    settings: DataSettings,
    runtime: Runtime,
    *,
    options: RunOptions = RunOptions(),
    embeddings: bool = False,
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    """Ask the model about (n,) readable rows: (n, C) probabilities, (n, D) embeddings if asked."""
    if saved.mode == "head":
        with (
            feature_cache(options, None) as cache,
            options.progress("features") as on_progress,
            one_thread_each(),
        ):
            table: FeatureTable
            if saved.backbone is None:
                table = GivenFeatures(np.asarray(manifest.arrays), rows)
            else:
                decoders = max(settings.workers or runtime.threads, runtime.threads)
                extractor = _extractor(saved, saved.backbone, runtime, decoders)
                store = FeatureCache(
                    cache,
                    extractor.key,
                    extractor.embedder.width,
                    TrainSettings().cache_gigabytes * 2**30,
                )
                source = _source(manifest, settings)
                table = find_features(
                    extractor, source, rows, scan.digest[rows], store, on_progress
                )
            return _ask_head(saved, table, runtime, embeddings)
    if saved.backbone is None:
        raise TypeError("a whole network has a backbone")
    threads = settings.workers or runtime.threads
    pictures = Pictures(
        _source(manifest, settings),
        rows,
        saved.backbone.spec,
        threads=threads,
        digest=scan.digest[rows],
    )
    model = saved.model.to(runtime.device)
    probs = predict_probs(model, pictures, runtime)
    return probs, embed(model, pictures, runtime) if embeddings else None


def _extractor(saved: SavedModel, backbone: Backbone, runtime: Runtime, decoders: int) -> Extractor:
    embedder = Embedder(backbone, saved.stages).to(runtime.device)
    return Extractor(embedder, backbone, runtime, decoders)


def _ask_head(
    saved: SavedModel, table: FeatureTable, runtime: Runtime, embeddings: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    """Go through the features tile by tile: they may be too many to hold at once."""
    if saved.scaling is None:
        raise TypeError("a head comes with its scaling")
    count, width = table.shape
    model = saved.model.to(runtime.device)
    probs = np.empty((count, len(saved.classes)), np.float32)
    kept = np.empty((count, width), np.float32) if embeddings else None
    for tile, features in table.tiles():
        scaled = saved.scaling(torch.from_numpy(features)).numpy()
        probs[tile] = predict_probs(model, Features(scaled), runtime)
        if kept is not None:
            kept[tile] = scaled
    return probs, kept


def _source(manifest: Manifest, settings: DataSettings) -> ImageSource:
    return open_source(manifest, ImageLimits(settings.max_bytes, settings.max_pixels))


def spread(values: NDArray[np.float32], rows: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """Put (n, D) values of some rows among `count` rows, NaN elsewhere."""
    whole = np.full((count, values.shape[1]), np.nan, np.float32)
    whole[rows] = values
    return whole


def _refuse_other_kind(saved: SavedModel, manifest: Manifest) -> None:
    if saved.backbone is not None and not manifest.has_images:
        raise DataError(
            f"{manifest.source} holds feature vectors, and the model was trained on pictures; "
            "give a manifest of pictures."
        )
    if saved.backbone is not None:
        return
    if manifest.has_images or manifest.arrays is None:
        raise DataError(
            f"{manifest.source} holds pictures, and the model was trained on feature vectors; give "
            "an .npz with X of shape (N, D)."
        )
    wanted = 0 if saved.scaling is None else len(saved.scaling.mean)
    if manifest.arrays.shape[1] != wanted:
        raise DataError(
            f"{manifest.source}: X has {manifest.arrays.shape[1]} features per row, and the model "
            f"was trained on {wanted}."
        )
