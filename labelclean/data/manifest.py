"""The Manifest: a table of samples and their given labels; a sample is its row, always."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from labelclean.data.part import EvenPart
from labelclean.data.places import Place
from labelclean.errors import ConfigError

Label = str | int


@dataclass(frozen=True, slots=True)
class Manifest:
    """Samples and their given labels; N rows, C classes. The row index is a sample's identity.

    Args:
        label: (N,) int64, position in `classes`; -1 in a manifest read without labels.
        classes: (C,) the distinct labels, as text or integers, in the order used everywhere.
        sample_id: (N,) unique text; the row number where the table has no such column.
        path: (N,) text that names the picture to a person: as written in the table, or a row name.
        split: (N,) text, or None if the table has no such column.
        verified: (N,) bool, True where a person vouched for the label.
        group: (N,) text, or None if the table has no such column.
        sample_weight: (N,) float64, or None if the table has no such column.
        table: The original columns, untouched and in order.
        image_col: Name of the image column in `table`; None for arrays.
        label_col: Name of the label column in `table`; None in a manifest without labels.
        image_root: Folder that relative paths start from; None where no files are involved.
        allow_outside_root: Whether paths may leave `image_root`.
        arrays: (N, H, W[, C]) uint8 images or (N, D) float features of an .npz; None otherwise.
        digest: SHA-256 of what was read, as hexadecimal text.
        source: Where the manifest was read from.
        origin: Metadata written by labelclean into its own Parquet files; empty for others' tables.
        part: Which rows of the file these are, where a limit took an even part; None: the first.
    """

    label: np.ndarray
    classes: tuple[Label, ...]
    sample_id: np.ndarray
    path: np.ndarray
    split: np.ndarray | None
    verified: np.ndarray
    group: np.ndarray | None
    sample_weight: np.ndarray | None
    table: pa.Table
    image_col: str | None
    label_col: str | None
    image_root: Place | None
    allow_outside_root: bool
    arrays: np.ndarray | None
    digest: str
    source: Place
    origin: Mapping[str, object] = field(default_factory=dict)
    part: EvenPart | None = None

    def __len__(self) -> int:
        return len(self.sample_id)

    @property
    def has_images(self) -> bool:
        """Whether the samples are pictures rather than feature vectors."""
        return self.image_col is not None if self.arrays is None else self.arrays.ndim > 2

    def label_values(self, label: np.ndarray | None = None) -> list[Label]:
        """Give labels as the user wrote them, for `label` or for the given labels."""
        codes = self.label if label is None else label
        return [self.classes[code] for code in codes.tolist()]

    def with_label(self, label: np.ndarray) -> "Manifest":
        """Give the same samples with other labels, in `label` and in the table's label column.

        Args:
            label: (N,) int64, position in `classes`.
        """
        if self.label_col is None:
            raise ConfigError(f"{self.source} was read without labels; there is none to replace.")
        position = self.table.column_names.index(self.label_col)
        field_ = self.table.schema.field(position)
        changed = label != self.label
        if not changed.any():
            return self
        values = self.table.column(position).to_pylist()
        for row in np.flatnonzero(changed):
            values[row] = self.classes[label[row]]
        table = self.table.set_column(position, field_, _typed(values, field_.type))
        return replace(self, label=label.astype(np.int64), table=table)

    def with_rows(self, rows: np.ndarray) -> "Manifest":
        """Give some of the samples, in the order of `rows`; classes and identities stay."""

        def some(part: np.ndarray | None) -> np.ndarray | None:
            return None if part is None else part[rows]

        return replace(
            self,
            label=self.label[rows],
            sample_id=self.sample_id[rows],
            path=self.path[rows],
            split=some(self.split),
            verified=self.verified[rows],
            group=some(self.group),
            sample_weight=some(self.sample_weight),
            table=self.table.take(rows),
            arrays=some(self.arrays),
            part=None if self.part is None else self.part.some(rows),
        )


def _typed(values: list[Label], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, type=kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, type=kind)
