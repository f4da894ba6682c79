"""Noise in a manifest: which rows may be touched, what is written, what is remembered."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from PIL import Image

from labelclean import __version__
from labelclean.benchmark.foreign import replace_pictures
from labelclean.benchmark.injection import OPEN, Injection
from labelclean.benchmark.noise import inject
from labelclean.data.images import ImageError
from labelclean.data.manifest import Manifest
from labelclean.data.sources import open_source
from labelclean.data.splits import HELD_OUT
from labelclean.errors import ConfigError, DataError, shortlist

TRUTH = "true_label"
_SIDE = 8


@dataclass(frozen=True, slots=True)
class PlantedManifest:
    """A manifest with planted noise, and the truth about it.

    Args:
        manifest: N rows; the label column is noisy and the column `true_label` holds the truth,
            null where the picture is of no known class.
        rows: (M,) int64, the rows noise could be planted in.
        injection: What happened in these rows.
        record: The same as plain data, for the file beside the manifest.
    """

    manifest: Manifest
    rows: np.ndarray
    injection: Injection
    record: dict[str, object]


def plant(
    manifest: Manifest,
    kind: str,
    rate: float,
    seed: int,
    options: Mapping[str, object],
    second: Manifest | None = None,
) -> PlantedManifest:
    """Plant noise in a manifest; rows of splits test and val and verified rows stay clean.

    Args:
        manifest: The clean samples.
        kind: A name in NOISES.
        rate: See `inject`.
        seed: Seed of every draw.
        options: Options of the protocol; `features` and `probs` have one row per row of the
            manifest.
        second: Where open-set noise takes its pictures from.

    Raises:
        ConfigError: An option does not fit.
        DataError: The manifest cannot take the noise, or has a column `true_label` already.
    """
    if seed < 0:
        raise ConfigError(f"--seed is {seed}; it must be 0 or more.")
    if TRUTH in manifest.table.column_names:
        raise DataError(
            f"{manifest.source} has a column {TRUTH!r}, where the truth is written to. Rename or "
            "remove that column; if noise was planted here before, start from the clean table."
        )
    rows = _open_rows(manifest)
    given = dict(options)
    for name in ("features", "probs"):
        if name in given:
            given[name] = _per_row(manifest, name, given[name])[rows]
    if second is not None:
        given["num_donors"] = len(second)
    out = inject(
        kind,
        manifest.label[rows],
        len(manifest.classes),
        rate,
        np.random.default_rng(seed),
        **given,
    )
    label = manifest.label.copy()
    label[rows] = out.label
    opened = rows[out.kind_of == OPEN]
    noisy = manifest.with_label(label)
    if second is not None and out.donor is not None and len(opened):
        noisy = replace_pictures(noisy, second, opened, out.donor[out.donor >= 0])
    noisy = replace(noisy, table=_with_truth(manifest, noisy.table, opened))
    return PlantedManifest(noisy, rows, out, _record(manifest, kind, seed, rows, out))


def _open_rows(manifest: Manifest) -> np.ndarray:
    touchable = ~manifest.verified
    if manifest.split is not None:
        touchable &= ~np.isin(manifest.split.astype(str), HELD_OUT)
    rows = np.flatnonzero(touchable)
    if not len(rows):
        raise DataError(
            f"{manifest.source}: every row is verified or of split {' or '.join(HELD_OUT)}, where "
            "labels stay clean; no row is left to plant noise in."
        )
    return rows


def _per_row(manifest: Manifest, name: str, values: object) -> np.ndarray:
    table = np.asarray(values)
    if table.shape[:1] != (len(manifest),):
        raise DataError(
            f"{name} have shape {table.shape}; {manifest.source} has {len(manifest)} rows, and "
            "each needs one."
        )
    return table


def _with_truth(manifest: Manifest, table: pa.Table, opened: np.ndarray) -> pa.Table:
    truth = manifest.table.column(manifest.label_col)
    if len(opened):
        values = truth.to_pylist()
        kind = truth.type.value_type if pa.types.is_dictionary(truth.type) else truth.type
        # An .npz cannot leave a cell empty; neither value can be a class of a table we read,
        # unless somebody numbers a class -1.
        nothing = None if manifest.arrays is None else "" if pa.types.is_string(kind) else -1
        for row in opened.tolist():
            values[row] = nothing
        truth = pa.array(values, kind)
    return table.append_column(TRUTH, truth)


def _record(
    manifest: Manifest, kind: str, seed: int, rows: np.ndarray, out: Injection
) -> dict[str, object]:
    return {
        "schema": 1,
        "tool": f"labelclean {__version__}",
        "noise": kind,
        "nominal_rate": out.nominal_rate,
        "actual_rate": out.actual_rate,
        "seed": seed,
        "classes": list(manifest.classes),
        "label_col": manifest.label_col,
        "truth_col": TRUTH,
        "input_digest": manifest.digest,
        "rows": len(manifest),
        "eligible_rows": len(rows),
        "flipped": int(out.flipped.sum()),
        "transition": out.transition.tolist(),
        "mask": rows[out.flipped].tolist(),
        "mask_open": rows[out.kind_of == OPEN].tolist(),
    }


def pixel_features(manifest: Manifest, rows: Iterable[int]) -> np.ndarray:
    """Give a small description of every picture: 8 by 8 RGB, centred and scaled.

    Args:
        manifest: Samples with pictures.
        rows: The rows in order, 0 to N-1; wrapped by whoever wants to see progress.

    Returns:
        (N, 192) float32.

    Raises:
        DataError: Pictures cannot be read; all of them are named.
    """
    source = open_source(manifest)
    features = np.zeros((len(manifest), _SIDE * _SIDE * 3), dtype=np.float32)
    faults = []
    for row in rows:
        try:
            pixels, _ = source.load(row)
        except ImageError as error:
            faults.append(f"row {row}: {error}")
            continue
        small = Image.fromarray(pixels).resize((_SIDE, _SIDE), Image.Resampling.BOX)
        # Centred, else every view of the picture mostly sees its brightness.
        features[row] = (np.asarray(small, dtype=np.float32).ravel() / 255.0 - 0.5) / 0.25
    if faults:
        raise DataError(
            f"{manifest.source}: {len(faults)} pictures cannot be read ({shortlist(faults)}); "
            "noise that depends on the picture needs all of them. Repair or remove the rows."
        )
    return features
