"""Optional columns that mean something: identities, what people vouched for, weights."""

import numpy as np
import pyarrow as pa

from labelclean.data.cells import cell_texts
from labelclean.data.places import Place
from labelclean.errors import DataError, shortlist

_TRUE = frozenset({"true", "1", "yes", "t", "y"})
_FALSE = frozenset({"false", "0", "no", "f", "n", ""})


def sample_ids(source: Place, table: pa.Table) -> np.ndarray:
    """Give the (N,) identities of the rows: their own, or the row numbers."""
    texts = column_texts(table, "sample_id")
    if texts is None:
        return np.array([str(row) for row in range(table.num_rows)], dtype=object)
    rows: dict[str, int] = {}
    faults = []
    for row, text in enumerate(texts):
        if not text:
            faults.append(f"row {row}: blank")
        elif text in rows:
            faults.append(f"row {row}: {text!r} as in row {rows[text]}")
        rows.setdefault(text, row)
    if faults:
        raise DataError(
            f"{source}, column 'sample_id': {len(faults)} ids are blank or repeated "
            f"({shortlist(faults)}); make every id unique, or drop the column to use row numbers."
        )
    return texts


def column_texts(table: pa.Table, name: str) -> np.ndarray | None:
    """Give a column as (N,) text; None if there is none of that name."""
    if name not in table.column_names:
        return None
    return np.array(cell_texts(table.column(name)), dtype=object)


def verified_rows(source: Place, table: pa.Table) -> np.ndarray:
    """Give the (N,) rows that a person vouched for."""
    words = [text.strip().lower() for text in cell_texts(table.column("verified"))]
    wrong = [f"row {row}: {word!r}" for row, word in enumerate(words) if word not in _TRUE | _FALSE]
    if wrong:
        raise DataError(
            f"{source}, column 'verified': {len(wrong)} cells are neither true nor false "
            f"({shortlist(wrong)}); write true or false."
        )
    return np.array([word in _TRUE for word in words], dtype=bool)


def row_weights(source: Place, table: pa.Table) -> np.ndarray:
    """Give the (N,) weights of the rows."""
    values = []
    wrong = []
    for row, text in enumerate(cell_texts(table.column("sample_weight"))):
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not (np.isfinite(value) and value >= 0):
            wrong.append(f"row {row}: {text!r}")
        values.append(value)
    if wrong:
        raise DataError(
            f"{source}, column 'sample_weight': {len(wrong)} weights are not numbers of 0 or more "
            f"({shortlist(wrong)})."
        )
    return np.array(values, dtype=np.float64)
