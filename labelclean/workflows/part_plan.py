"""What is to be done in shards: written down once, before any worker begins."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from labelclean.atomic import atomic_path, remove_left_over
from labelclean.data.images import ImageError, ImageLimits
from labelclean.data.manifest import Manifest
from labelclean.data.places import Place
from labelclean.data.sources import ImageSource, open_source
from labelclean.data.tar_shards import shard_of
from labelclean.errors import ConfigError
from labelclean.recipe import Recipe
from labelclean.training.parts import PATHS, PartPlan, PartStore, build_extractor, cut_rows
from labelclean.training.runtime import Runtime

PART_ROWS = 2048
_PROBED = 128


def plan_parts(manifest: Manifest, recipe: Recipe, runtime: Runtime, work: Path) -> PartStore:
    """Write down what is to be done, unless it is written down already.

    Raises:
        ConfigError: There is nothing to share out, or another plan was begun.
    """
    if manifest.arrays is not None or not manifest.has_images:
        raise ConfigError("--engine shares out the reading of pictures, and there are none here.")
    if recipe.training.mode == "scratch" or runtime.processes > 1:
        raise ConfigError(
            "--engine shares out features of a frozen network in one audit process; it goes "
            "neither with --mode scratch nor with torchrun."
        )
    limits = ImageLimits(recipe.data.max_bytes, recipe.data.max_pixels)
    source = open_source(manifest, limits)
    auto = recipe.training.mode == "auto" and runtime.device.type == "cpu"
    head = recipe.training.mode == "head" or auto
    model = recipe.model if head else replace(recipe.model, image_size=None)
    side = _typical_side(source)
    extractor = build_extractor(model, side, runtime, 1)
    root = manifest.image_root if _by_path(manifest) else None
    plan = PartPlan(
        manifest=_anywhere(manifest.source),
        digest=manifest.digest,
        root=None if root is None else _anywhere(root),
        settings=asdict(recipe.data),
        model=asdict(model),
        picture_side=side,
        device=runtime.device.type,
        precision=recipe.training.precision,
        seed=runtime.seed,
        key=extractor.key,
        width=extractor.embedder.width,
        bounds=cut_rows(len(manifest), PART_ROWS, _shard_edges(manifest)),
    )
    known = PartStore.stored_plan(work)
    if known is not None and known.mark != plan.mark:
        raise ConfigError(
            f"{work.parent} was begun with other shards: other settings, or other versions of "
            "labelclean, torch or Pillow. Use those again, or --overwrite."
        )
    store = PartStore(work, plan)
    store.folder.mkdir(parents=True, exist_ok=True)
    remove_left_over(store.folder)
    if root is not None and not (store.folder / PATHS).is_file():
        table = pa.table({"path": pa.array(manifest.path.tolist(), pa.string())})
        with atomic_path(store.folder / PATHS) as temporary:
            pq.write_table(table, temporary)
    store.begin()
    return store


def _anywhere(place: Place) -> str:
    return str(place.absolute()) if isinstance(place, Path) else str(place)


def _by_path(manifest: Manifest) -> bool:
    """Tell whether pictures are named by paths alone, so that a worker needs nothing else."""
    if manifest.image_col is None or manifest.image_root is None:
        return False
    kind = manifest.table.schema.field(manifest.image_col).type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _typical_side(source: ImageSource) -> int | None:
    """Give the median shorter side of some pictures."""
    sides = []
    for row in np.unique(np.linspace(0, len(source) - 1, _PROBED).astype(int)).tolist():
        try:
            sides.append(min(source.inspect(row)[:2]))
        except ImageError:
            continue
    return int(np.median(sides)) if sides else None


def _shard_edges(manifest: Manifest) -> np.ndarray:
    """(E,) rows at which another tar shard begins: who reads it, reads it whole."""
    shards = np.array([shard_of(path) for path in manifest.path.tolist()])
    return np.flatnonzero(shards[1:] != shards[:-1]) + 1
