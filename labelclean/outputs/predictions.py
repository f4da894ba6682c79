"""Predictions as a table."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelclean.data.manifest import Label, Manifest
from labelclean.outputs.schema import label_type


def predictions_table(
    manifest: Manifest,
    classes: tuple[Label, ...],
    probs: NDArray[np.float32],
    reason: NDArray[np.object_],
    embedding: NDArray[np.float32] | None,
) -> pa.Table:
    """Give one line per input row, in input order; null where a row could not be read.

    Args:
        manifest: The samples, N rows.
        classes: (C,) the labels in the order of `probs`.
        probs: (N, C); NaN where not readable.
        reason: (N,) text, why a row is not readable; empty where it is.
        embedding: (N, D); None: no such column.
    """
    missing: NDArray[np.bool_] = np.asarray(np.isnan(probs).any(axis=1))
    best = np.where(missing, 0, np.nan_to_num(probs, nan=-1.0).argmax(axis=1))
    names = np.array(classes, dtype=object)[best]
    kind = label_type(classes)
    columns = {
        "row": pa.array(np.arange(len(manifest))),
        "sample_id": pa.array(manifest.sample_id, pa.string()),
        "path": pa.array(manifest.path, pa.string()),
        "label_predicted": pa.array(names.tolist(), kind, mask=missing),
        "p_predicted": pa.array(probs[np.arange(len(best)), best].astype(float), mask=missing),
        "probs": _lists(probs, missing),
        "reason": pa.array(reason, pa.string(), mask=~missing),
    }
    if embedding is not None:
        columns["embedding"] = _lists(embedding, missing)
    return pa.table(columns)


def _lists(values: NDArray[np.float32], missing: NDArray[np.bool_]) -> pa.Array:
    # Not of a fixed size: up to version 23 at least, pyarrow cannot read such lists with nulls.
    ends = np.concatenate([[0], np.cumsum(np.where(missing, 0, values.shape[1]))])
    flat = pa.array(values[~missing].ravel())
    form, at = (pa.ListArray, pa.int32()) if ends[-1] < 2**31 else (pa.LargeListArray, pa.int64())
    return form.from_arrays(pa.array(ends, at), flat, mask=pa.array(missing))
