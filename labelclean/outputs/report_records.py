"""What the page takes from records.parquet: neighbours, and how training went."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from labelclean.arrays import Ints, Singles
from labelclean.outputs.report_rows import Neighbours
from labelclean.records.lists import list_column, read_lists
from labelclean.records.records import Records

NEIGHBOURS_COLUMN, STAGES_COLUMN = "neighbours", "attention_stages"
STAGES_KEY = b"labelclean.stages"
SHOWN_NEIGHBOURS = 5


@dataclass(frozen=True, slots=True)
class EpochHistory:
    """What was recorded per epoch about n rows, E epochs.

    Args:
        row: (n,) rows of the manifest.
        label: (n,) labels that were trained with.
        loss: (n, E), or None.
        predicted: (n, E) classes, or None.
        p_given: (n, E), or None.
        stages: 1-based epochs of `attention`.
        attention: (n, S) attention at these epochs, or None.
    """

    row: Ints
    label: Ints
    loss: Singles | None
    predicted: NDArray[np.int32] | None
    p_given: Singles | None
    stages: tuple[int, ...]
    attention: Singles | None


def with_shown(table: pa.Table, near: Ints | None, watched: Records | None) -> pa.Table:
    """Add to records what the page shows and no judgement needs.

    Args:
        table: One line per row.
        near: (n, k) nearest rows of the manifest, nearest first, -1 for none; None: not known.
        watched: Records of the loss with attention; None: there are none.
    """
    if near is not None and near.shape[1]:
        table = table.append_column(
            NEIGHBOURS_COLUMN, list_column(near[:, :SHOWN_NEIGHBOURS].astype(np.int32))
        )
    if watched is not None and watched.attention is not None:
        last = len(watched.attention) - 1
        at = sorted({0, last // 2, last})
        table = table.append_column(STAGES_COLUMN, list_column(watched.attention[at].T))
        notes = {STAGES_KEY: json.dumps([epoch + 1 for epoch in at]).encode()}
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), **notes})
    return table


def read_epoch_history(path: Path) -> EpochHistory:
    """Read what was recorded per epoch; what was not is None."""
    schema = pq.read_schema(path)
    wanted = ["row", "label", "loss", "predicted", "p_given", STAGES_COLUMN]
    table = pq.read_table(path, columns=[name for name in wanted if name in schema.names])
    notes: Mapping[bytes, bytes] = schema.metadata or {}
    return EpochHistory(
        row=table["row"].to_numpy(),
        label=table["label"].to_numpy(),
        loss=read_lists(table, "loss"),
        predicted=read_lists(table, "predicted"),
        p_given=read_lists(table, "p_given"),
        stages=tuple(json.loads(notes.get(STAGES_KEY, b"[]"))),
        attention=read_lists(table, STAGES_COLUMN),
    )


def read_neighbours(
    path: Path, rows: Sequence[int], labels: Ints, classes: Sequence[object]
) -> Neighbours:
    """Give the nearest rows of some rows, with their given labels.

    Args:
        path: records.parquet.
        rows: Rows of the manifest.
        labels: (N,) class of every row of the manifest.
        classes: Names of the classes.
    """
    if NEIGHBOURS_COLUMN not in pq.read_schema(path).names:
        return {}
    table = pq.read_table(path, columns=["row", NEIGHBOURS_COLUMN])
    table = table.filter(pc.is_in(table["row"], value_set=pa.array(rows, pa.int64())))
    found = zip(table["row"].to_pylist(), table[NEIGHBOURS_COLUMN].to_pylist(), strict=True)
    return {
        row: [(near, str(classes[int(labels[near])])) for near in nears if near >= 0]
        for row, nears in found
    }
