"""What must hold at the end of every run; one that breaks it fails loudly and is not complete."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from labelclean.correction.result import Audit
from labelclean.data.images import ImageError, ImageLimits
from labelclean.data.manifest import Manifest
from labelclean.data.settings import DataSettings
from labelclean.data.sources import array_digest, open_source
from labelclean.data.splits import held_out
from labelclean.errors import DataError, OutputError, shortlist
from labelclean.evidence.folds import some_rows

CONTENT = "content_sha256"
"""Column of records.parquet: SHA-256 of the content the evidence is about."""
LOOKED_AT = 256  # samples that are read once more at the end
_REPORT = "This is a fault of labelclean, please report it."


def require_every_row(found: Audit, audit_split: str | None) -> None:
    """Refuse a result in which a row is missing, stands twice, or does not belong.

    Args:
        found: The result.
        audit_split: The held-out split that is audited too; None: none.

    Raises:
        OutputError: Some row does not stand exactly once.
    """
    count = len(found.manifest)
    inside = found.row[(found.row >= 0) & (found.row < count)]
    times = np.bincount(inside, minlength=count)
    expected = ~held_out(found.manifest, audit_split)
    wrong = np.flatnonzero(times != expected)
    if len(wrong) or len(inside) != len(found.row):
        raise OutputError(
            f"the rows {shortlist(wrong)} do not stand exactly once in the result. {_REPORT}"
        )


def require_own_evidence(
    records: pa.Table, manifest: Manifest, samples: Manifest, settings: DataSettings
) -> None:
    """Refuse evidence that is about another sample than its row.

    Args:
        records: What is stored: row, sample_id and, where content was read, its digest.
        manifest: The input, for the identity of its rows.
        samples: The same rows with the content that was trained on.
        settings: Caps on a single picture.

    Raises:
        OutputError: A line of the records names another row's sample.
        DataError: A sample's content is not what the evidence is about.
    """
    row = records["row"].to_numpy()
    names = np.array(records["sample_id"].to_pylist(), dtype=object)
    strange = np.flatnonzero(names != manifest.sample_id[row])
    if len(strange):
        raise OutputError(
            f"the evidence of rows {shortlist(row[strange])} is about other samples. {_REPORT}"
        )
    if CONTENT not in records.column_names:
        return
    changed, gone = changed_samples(records, samples, settings)
    if changed or gone:
        changed = sorted([*changed, *gone])
        raise DataError(
            f"the samples of rows {shortlist(changed)} were changed while they were audited, so "
            "the evidence is about something else. Audit again when nothing changes the files."
        )


def changed_samples(
    records: pa.Table, samples: Manifest, settings: DataSettings
) -> tuple[list[int], list[int]]:
    """Read up to 256 samples again; give the rows whose content is another, or cannot be read.

    Args:
        records: What is stored, with the digest of the content.
        samples: The rows with the content that was trained on.
        settings: Caps on a single picture.
    """
    content, row = _reader(samples, settings), records["row"].to_numpy()
    lines = some_rows(len(row), LOOKED_AT)
    stored = records[CONTENT].take(pa.array(lines)).to_pylist()
    seen = [(int(at), content(int(at)), kept) for at, kept in zip(row[lines], stored, strict=True)]
    changed = [at for at, found, kept in seen if found is not None and found != kept]
    return changed, [at for at, found, _ in seen if found is None]


def _reader(samples: Manifest, settings: DataSettings) -> Callable[[int], bytes | None]:
    """Give a function that reads a row's content and gives its digest; None: it is gone."""
    arrays = samples.arrays
    if arrays is not None and not samples.has_images:
        return lambda row: array_digest(arrays[row])
    source = open_source(samples, ImageLimits(settings.max_bytes, settings.max_pixels))

    def read(row: int) -> bytes | None:
        try:
            return source.inspect(row)[2]
        except ImageError:
            return None

    return read
