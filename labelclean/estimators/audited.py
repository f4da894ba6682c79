"""Pictures in memory, observed as an audit observes a manifest; loads image code."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelclean import losses
from labelclean.data.manifest import Manifest
from labelclean.data.scan import scan_images
from labelclean.estimators.inputs import Labelled
from labelclean.estimators.pictures import device_of, refuse_unreadable, source_of
from labelclean.evidence.value import Evidence
from labelclean.models.own import backbone_name
from labelclean.models.settings import ModelSettings
from labelclean.options import RunOptions, progress_bar
from labelclean.recipe import Recipe
from labelclean.training.runtime import Runtime
from labelclean.training.settings import LossSettings, TrainSettings
from labelclean.workflows.collect import collect_evidence
from labelclean.workflows.observe import observe, prepare


def recipe_of(
    loss: Any, params: Mapping[str, Any] | None, mode: str, backbone: Any, epochs: int | None
) -> Recipe:
    """Give the settings of an audit of pictures.

    Args:
        loss: A name, a class of losses, or an object.
        params: Its parameters; None: its defaults.
        mode: How to train.
        backbone: A name, a torch module or a timm model.
        epochs: Passes over the data; None: what suits the mode.
    """
    # A text never loads code here: estimators are read from files, too.
    name = loss if isinstance(loss, str) else losses.loss_name(loss)
    return Recipe(
        model=ModelSettings(backbone=backbone_name(backbone)),
        loss=LossSettings(name, dict(params or {})),
        # Nothing else speaks about rows that a network from scratch did not see.
        training=TrainSettings(mode=mode, epochs=epochs, folds=2 if mode == "scratch" else 0),
    )


def observe_pictures(
    pictures: NDArray[Any],
    known: Labelled,
    recipe: Recipe,
    *,
    device: str,
    threads: int,
    seed: int,
    verbose: int,
) -> Evidence:
    """Give what an audit of the same pictures would judge by.

    Args:
        pictures: (N, H, W[, C]) pixels or (N,) paths.
        known: What is known about them.
        recipe: Every setting.
        device: `auto`, `cpu`, `cuda` or `mps`.
        threads: Threads that decode and compute.
        seed: Seed of every draw.
        verbose: Above 0, bars on the error stream show how far it is.

    Raises:
        DataError: Pictures cannot be read, or are too few.
        ConfigError: The recipe names what does not exist.
    """
    prepare(recipe)
    refuse_unreadable(scan_images(source_of(pictures), workers=0))
    runtime = Runtime(device_of(device), seed=seed, threads=threads)
    options = RunOptions(progress=partial(progress_bar, shown=verbose > 0))
    return collect_evidence(observe(_manifest(pictures, known), recipe, runtime, options=options))


def _manifest(pictures: NDArray[Any], known: Labelled) -> Manifest:
    count, pixels = len(known.label), pictures.dtype == np.uint8
    names = np.arange(count).astype(str).astype(object)
    return Manifest(
        label=known.label,
        classes=tuple(range(known.num_classes)),
        sample_id=names,
        path=names if pixels else pictures,
        split=None,
        verified=np.zeros(count, bool) if known.verified is None else known.verified,
        group=known.group,
        sample_weight=known.weight,
        table=pa.table({"label": known.label} if pixels else {"image": pictures.tolist()}),
        image_col=None if pixels else "image",
        label_col=None,
        image_root=Path.cwd(),
        allow_outside_root=True,
        arrays=pictures if pixels else None,
        digest="",
        source=Path.cwd() / "X",
    )
