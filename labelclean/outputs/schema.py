"""Names, types and order of the columns we write: the promise to readers."""

import pyarrow as pa

SIGNALS = ("p_given", "attention", "target_given", "margin", "neighbour_agreement", "p_outlier",
           "ambiguity")  # fmt: skip

CORRECTED_COLUMNS = ("label_given", "label_action", "label_confidence", "p_error")


def issues_schema(label: pa.DataType) -> pa.Schema:
    """Give the columns of issues.parquet for labels of a type."""
    words = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            ("rank", pa.int64()),
            ("row", pa.int64()),
            ("sample_id", pa.string()),
            ("path", pa.string()),
            ("label_given", label),
            ("label_suggested", label),
            ("action", words),
            ("p_error", pa.float64()),
            ("suspicion", pa.float64()),
            ("p_given", pa.float64()),
            ("p_suggested", pa.float64()),
            ("attention", pa.float64()),
            ("target_given", pa.float64()),
            ("margin", pa.float64()),
            ("neighbour_agreement", pa.float64()),
            ("reason", words),
            ("kind", words),
            ("p_outlier", pa.float64()),
            ("ambiguity", pa.float64()),
            ("duplicate_group", pa.int64()),
            ("duplicate_kind", words),
            ("leaks_to", pa.int64()),
        ]
    )


def label_type(classes: tuple[str | int, ...]) -> pa.DataType:
    """Give the column type of labels."""
    return pa.int64() if all(isinstance(name, int) for name in classes) else pa.string()
