"""Which rows of a manifest are trained on, and which are only looked at."""

import numpy as np
from numpy.typing import NDArray

from labelclean.data.images import ImageLimits
from labelclean.data.manifest import Manifest
from labelclean.data.scan import Scan
from labelclean.data.settings import DataSettings
from labelclean.data.sources import ImageSource, open_source
from labelclean.data.splits import held_out
from labelclean.errors import ConfigError, DataError
from labelclean.models.settings import ModelSettings
from labelclean.strategies import Setting, Strategy, require_setting
from labelclean.training.runtime import Runtime
from labelclean.training.samples import Samples
from labelclean.training.settings import TrainSettings


def select_samples(
    manifest: Manifest,
    scan: Scan,
    settings: DataSettings,
    left_out: NDArray[np.bool_] | None = None,
) -> tuple[Samples, NDArray[np.int64]]:
    """Choose the readable rows to train on, and those that are only looked at.

    Args:
        manifest: The samples.
        scan: Which of them can be read.
        settings: The [data] section.
        left_out: (N,) rows to pass over; None: none.

    Returns:
        The samples, and the (m,) rows of the splits test and val among them.

    Raises:
        DataError: Too few are left to train on.
    """
    held = held_out(manifest, settings.audit_split)
    usable = scan.readable if left_out is None else scan.readable & ~left_out
    rows, apart = np.flatnonzero(usable & ~held), np.flatnonzero(usable & held)
    classes = np.unique(manifest.label[rows])
    if len(rows) < 2 or len(classes) < 2:
        raise DataError(_too_few(manifest, scan, rows, len(classes)))
    every = np.concatenate([rows, apart])
    weight = np.ones(len(rows)) if manifest.sample_weight is None else manifest.sample_weight[rows]
    source: ImageSource | NDArray[np.float32]
    if manifest.arrays is not None and not manifest.has_images:
        source, side = manifest.arrays, None
    else:
        limits = ImageLimits(settings.max_bytes, settings.max_pixels)
        source = open_source(manifest, limits)
        side = int(np.median(np.minimum(scan.width, scan.height)[rows]))
    validation = _validation(manifest, every, len(rows))
    return Samples(
        source=source,
        rows=every,
        digest=scan.digest[every],
        trained=len(rows),
        label=manifest.label[every],
        weight=weight.astype(np.float32),
        sample_id=manifest.sample_id[every],
        num_classes=len(manifest.classes),
        picture_side=side,
        validation=validation,
        verified=manifest.verified[every] if manifest.verified.any() else None,
    ), apart


def _validation(
    manifest: Manifest, every: NDArray[np.int64], trained: int
) -> dict[str, NDArray[np.int64]]:
    if manifest.split is None:
        return {}
    held = np.arange(trained, len(every))
    noisy = held[manifest.split[every[held]].astype(str) == "val"]
    return {"noisy": noisy, "clean": noisy[manifest.verified[every[noisy]]]}


def settle_training(settings: TrainSettings, samples: Samples, runtime: Runtime) -> TrainSettings:
    """Fill in what suits the samples and the machine.

    Raises:
        DataError: There are too few samples for so many processes.
        ConfigError: The settings do not fit the samples.
    """
    mode = settled_mode(settings, runtime, isinstance(samples.source, np.ndarray))
    training = settings.resolved(mode, samples.trained, runtime.processes)
    if samples.trained < 2 * runtime.processes:
        raise DataError(
            f"{samples.trained} samples to train on are too few for {runtime.processes} processes."
        )
    require_validation(training, samples)
    return training


def settled_mode(settings: TrainSettings, runtime: Runtime, features: bool) -> str:
    """Give the mode that is trained in, which `auto` leaves to the machine."""
    if settings.mode != "auto":
        return settings.mode
    return "head" if runtime.device.type == "cpu" or features else "finetune"


def require_strategy(
    name: str,
    strategy: Strategy,
    counts: tuple[int, int],
    model: ModelSettings,
    training: TrainSettings,
) -> None:
    """Refuse a strategy that cannot work with this model and resolved training.

    Args:
        name: What it is called.
        strategy: It.
        counts: Numbers of rows to train on and of classes.
        model: The [model] settings.
        training: Resolved settings.
    """
    rows, classes = counts
    setting = Setting(
        rows=rows,
        classes=classes,
        batch_size=training.batch_size or rows,
        epochs=training.epochs or 1,
        linear=training.mode == "head" and not model.hidden,
    )
    require_setting(name, strategy, setting)


def require_validation(training: TrainSettings, samples: Samples) -> None:
    """Refuse to stop early by rows that do not exist."""
    kind = training.early_stop
    if kind != "off" and not len(samples.validation.get(kind, ())):
        extra = " that are verified" if kind == "clean" else ""
        raise ConfigError(
            f"training.early_stop is {kind!r}, and no readable row has split 'val'{extra}; mark "
            "some rows so in the manifest, or set training.early_stop=off."
        )


def _too_few(manifest: Manifest, scan: Scan, rows: NDArray[np.int64], classes: int) -> str:
    unreadable = np.flatnonzero(~scan.readable)
    why = ""
    if len(unreadable):
        first = int(unreadable[0])
        why = (
            f" {len(unreadable)} of {len(manifest)} rows cannot be read, for example row {first} "
            f"({manifest.path[first]}): {scan.reason[first]}."
        )
    return (
        f"{manifest.source}: {len(rows)} readable rows of {classes} classes are left to train on; "
        f"at least 2 rows of 2 classes are needed.{why} `labelclean check` lists them all."
    )
