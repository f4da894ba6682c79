"""How our reader knows a table that labelclean wrote."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from labelclean.data.parquet import relative_path
from labelclean.data.places import Place, join
from labelclean.data.tables import RawTable
from labelclean.errors import DataError

OWN_COLUMNS = ("label_given", "label_action", "label_confidence", "p_error")
"""Columns we add to corrected manifests; in anybody else's table they are a name clash."""
EXPORT_MARK = "labelclean_export"
"""Last column of a text export that needs it: the image root as seen from the file."""


def unmarked(source: Place, raw: RawTable, image_columns: tuple[str, ...]) -> RawTable:
    """Take the mark of a text export away; its paths then start from the root it names.

    Args:
        source: The file.
        raw: What was read from it.
        image_columns: Columns that may hold paths, the first one present does.

    Raises:
        DataError: The mark is damaged.
    """
    if EXPORT_MARK not in raw.table.column_names or raw.root is None:
        return raw
    values = set(raw.table.column(EXPORT_MARK).to_pylist())
    text = next(iter(values)) if len(values) == 1 else None
    if not isinstance(text, str) or not text or Path(text).is_absolute():
        raise DataError(
            f"{source}: column {EXPORT_MARK!r} must hold one relative folder, the same in every "
            "row; export the table again, or remove the column and pass --image-root."
        )
    table = raw.table.drop_columns([EXPORT_MARK])
    root = join(raw.root, text)
    name = next((one for one in image_columns if one in table.column_names), None)
    if (
        name is not None
        and isinstance(root, Path)
        and pa.types.is_string(table.schema.field(name).type)
    ):
        start = raw.root
        moved = [
            path if not path else relative_path(start / path, root)
            for path in table.column(name).to_pylist()
        ]
        position = table.column_names.index(name)
        table = table.set_column(position, name, pa.array(moved, pa.string()))
    origin = {"tool": "labelclean", "image_root": text}
    return replace(raw, table=table, root=root, origin=origin)
