"""CSV and TSV, to the letter: every cell comes back as it was, and no cell becomes a formula.

A text file has no types. A column is read as integers or floats only if writing the numbers back
gives the very same text; everything else stays text.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from labelclean.data.budget import DEFAULT_BUDGET, Budget
from labelclean.data.cells import cell_texts
from labelclean.data.places import Place
from labelclean.errors import DataError, shortlist

ESCAPED = "labelclean_escaped"
"""Name of the empty last column that says: a leading ' was put before risky cells here."""

_RISKY = ("=", "+", "-", "@", "\t", "\r", "'")
_CANONICAL_INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_LARGEST_BLOCK = 2**30


def read_text_table(
    path: Place, data: bytes, delimiter: str, budget: Budget = DEFAULT_BUDGET
) -> pa.Table:
    """Read a CSV or TSV file with a header; N rows, every column text or canonical numbers.

    Args:
        path: Where the data came from, for messages.
        data: The file's content, UTF-8 with or without a byte order mark.
        delimiter: What separates the cells.
        budget: What the file may claim.

    Raises:
        DataError: Wrong encoding, ragged rows, an unclosed quote, a repeated column name, no rows.
    """
    rows = _parse(path, _utf8(path, data), delimiter, budget)
    names = [column[0].as_py() for column in rows.columns]
    escaped = bool(names) and names[-1] == ESCAPED
    # Copied, not sliced: pc.if_else of pyarrow 17 spoils the last cells of a slice.
    below = pa.array(np.arange(1, rows.num_rows))
    columns = [column.combine_chunks().take(below) for column in rows.columns]
    if escaped:
        names, columns = [_unescape(name) for name in names[:-1]], columns[:-1]
        columns = [_unescape_column(column) for column in columns]
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise DataError(
            f"{path}: the header names {shortlist(map(repr, repeated))} more than once; "
            "give every column its own name."
        )
    return pa.table([_infer(column) for column in columns], names=names)


def format_text_table(table: pa.Table, delimiter: str, *, raw: bool) -> bytes:
    """Format a table as CSV or TSV, formula-safe unless `raw`.

    Text cells and column names that start with = + - @ tab, CR or ' get a leading '; a column
    whose cells are all numbers is never touched. Where anything was escaped, an empty last column
    named `labelclean_escaped` tells our reader to undo it.
    """
    names = list(table.column_names)
    columns = [cell_texts(column) for column in table.columns]
    if not raw:
        numeric = [_is_numeric(column) for column in table.columns]
        safe = [
            cells if number else [_escape(cell) for cell in cells]
            for cells, number in zip(columns, numeric, strict=True)
        ]
        safe_names = [_escape(name) for name in names]
        if safe != columns or safe_names != names or (names and names[-1] == ESCAPED):
            names, columns = [*safe_names, ESCAPED], [*safe, [""] * table.num_rows]
    lines = [_format_row(names, delimiter)]
    lines += [_format_row(row, delimiter) for row in zip(*columns, strict=True)]
    return "".join(lines).encode("utf-8", errors="surrogatepass")


def _utf8(path: Place, data: bytes) -> bytes:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path} is encoded as UTF-16; save it as UTF-8 and try again.")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8; "
            "save the file as UTF-8 and try again."
        ) from error
    return data.removeprefix(b"\xef\xbb\xbf")


def _parse(path: Place, data: bytes, delimiter: str, budget: Budget) -> pa.Table:
    ragged: list[str] = []

    def note(row: pyarrow.csv.InvalidRow) -> str:
        ragged.append(
            f"record {row.number} has {row.actual_columns} cells instead of {row.expected_columns}"
        )
        return "skip"

    if not data.strip():
        raise DataError(f"{path} is empty; it needs a header and at least one row.")
    columns = _all_text(data, delimiter)
    budget.require_columns(path, len(columns))
    budget.require_rows(path, data.count(b"\n"))
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(data),
            read_options=pyarrow.csv.ReadOptions(
                autogenerate_column_names=True,
                use_threads=False,
                # One block: a cell may be longer than any smaller block.
                block_size=min(len(data) + 1, _LARGEST_BLOCK),
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=columns, strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path} cannot be read as a table: {error}. Look for a quote that is not closed."
        ) from error
    if ragged:
        raise DataError(
            f"{path}: {shortlist(ragged)} (record 1 is the header). "
            'Put cells that contain the separator or a line break in double quotes ("...").'
        )
    if table.num_rows < 2:
        raise DataError(f"{path} has a header but no rows; nothing to read.")
    return table


def _all_text(data: bytes, delimiter: str) -> dict[str, pa.DataType]:
    # An upper bound of the number of columns is enough: the parser ignores names it does not meet.
    header_end = re.search(rb'^(?:[^"\r\n]|"[^"]*")*', data)
    header = data[: header_end.end()] if header_end else data
    return {f"f{i}": pa.string() for i in range(header.count(delimiter.encode()) + 1)}


def _escape(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_RISKY) else cell


def _unescape(cell: str) -> str:
    return cell[1:] if cell.startswith("'") else cell


def _unescape_column(column: pa.Array) -> pa.Array:
    marked = pc.starts_with(column, "'")
    return pc.if_else(marked, pc.utf8_slice_codeunits(column, 1), column)


def _format_row(cells: Sequence[str], delimiter: str) -> str:
    quoted = [quote_cell(cell, delimiter) for cell in cells]
    if quoted == [""]:
        return '""\n'  # a bare empty line would be skipped by every reader
    return delimiter.join(quoted) + "\n"


def quote_cell(cell: str, delimiter: str) -> str:
    """Put a cell in quotes where a reader would need them."""
    if delimiter in cell or '"' in cell or "\n" in cell or "\r" in cell:
        return '"' + cell.replace('"', '""') + '"'
    return cell


def is_canonical_integer(column: pa.Array) -> bool:
    """Tell whether every cell is a decimal integer that prints as it reads and fits int64."""
    if not pc.all(pc.match_substring_regex(column, _CANONICAL_INTEGER), min_count=0).as_py():
        return False
    try:
        column.cast(pa.int64())
    except pa.ArrowInvalid:
        return False
    return True


def _infer(column: pa.Array) -> pa.Array:
    blank = pc.equal(column, "")
    filled = column.filter(pc.invert(blank))
    if len(filled) == 0:
        return column
    if is_canonical_integer(filled):
        return pc.if_else(blank, None, column).cast(pa.int64())
    if pc.match_substring_regex(filled[0:1], _NUMBER)[0].as_py() or filled[0].as_py() in _ODD:
        floats = _canonical_floats(filled)
        if floats is not None:
            values = np.full(len(column), np.nan)
            present = ~blank.to_numpy(zero_copy_only=False)
            values[present] = floats
            return pa.array(values, mask=~present)
    return column


_ODD = ("nan", "inf", "-inf")


def _canonical_floats(cells: pa.Array) -> list[float] | None:
    floats = []
    for text in cells.to_pylist():
        try:
            value = float(text)
        except ValueError:
            return None
        if repr(value) != text:
            return None
        floats.append(value)
    # A column of nothing but "nan" or "inf" is more likely words than numbers.
    return floats if any(map(math.isfinite, floats)) else None


def _is_numeric(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return True
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return False
    filled = column.filter(pc.not_equal(column, "")).drop_null()
    return len(filled) > 0 and bool(pc.all(pc.match_substring_regex(filled, _NUMBER)).as_py())
