"""Edit cells of a text table in place: every byte that is not edited stays as it was."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from labelclean.data.cells import cell_texts
from labelclean.data.manifest import Label, Manifest
from labelclean.data.textfiles import quote_cell

_BOM = b"\xef\xbb\xbf"
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
TEXT_FORMS = (*_DELIMITERS, ".jsonl")


@dataclass(frozen=True)
class Separated:
    """The records of a CSV or TSV file; head, records and tail together are the file."""

    head: bytes
    records: list[bytes]
    tail: bytes
    delimiter: str
    pattern: re.Pattern[bytes]

    @classmethod
    def parse(cls, data: bytes, delimiter: str, names: list[str], name: str) -> "Separated | None":
        """Cut a file into records; None where that cannot be done."""
        stop = re.escape(delimiter.encode()) + rb"\r\n"
        cell = rb'(?:"[^"]*+(?:""[^"]*+)*+"[^%b]*+|[^%b]*+)' % (stop, stop)
        separator, before = re.escape(delimiter.encode()), names.index(name)
        after = len(names) - before - 1
        pattern = re.compile(
            rb"(?:\r\n|\r|\n)*+(?:%b%b){%d}(?P<label>%b)(?:%b%b){%d}(?:\r\n|\r|\n|\Z)"
            % (cell, separator, before, cell, separator, cell, after)
        )
        position = len(_BOM) if data.startswith(_BOM) else 0
        begin, records = 0, []
        end = len(data.rstrip(b"\r\n"))
        while position < end:
            found = pattern.match(data, position)
            if found is None:
                return None
            records.append(data[begin : found.end()])
            begin = position = found.end()
        if not records:
            return None
        return cls(records[0], records[1:], data[begin:], delimiter, pattern)

    def cell(self, record: bytes) -> tuple[int, int]:
        """Give where the label stands in a record."""
        found = self.pattern.match(record)
        if found is None:
            raise ValueError("this is no record of the table")
        return found.span("label")

    def render(self, label: Label, like: str) -> str:
        """Write a label as a cell, in the manner of the cell it replaces."""
        text = str(label)
        if like.startswith('"'):
            return '"' + text.replace('"', '""') + '"'
        return quote_cell(text, self.delimiter)


@dataclass(frozen=True)
class JsonLines:
    """The records of a file with one JSON object a line; as `Separated`."""

    head: bytes
    records: list[bytes]
    tail: bytes
    name: str

    @classmethod
    def parse(cls, data: bytes, name: str) -> "JsonLines":
        """Cut a file into records."""
        head = _BOM if data.startswith(_BOM) else b""
        records, blank = [], b""
        for line in data[len(head) :].split(b"\n"):
            whole = blank + line + b"\n"
            blank = b"" if line.strip() else whole
            if line.strip():
                records.append(whole)
        tail = blank
        # split() sees one more line than there are line ends.
        if tail:
            tail = tail[:-1]
        elif records:
            records[-1] = records[-1][:-1]
        return cls(head, records, tail, name)

    def cell(self, record: bytes) -> tuple[int, int]:
        """Give where the label stands in a record."""
        text = record.decode("utf-8", "surrogatepass")
        start, end = _value_span(text, self.name)
        before = len(text[:start].encode("utf-8", "surrogatepass"))
        return before, before + len(text[start:end].encode("utf-8", "surrogatepass"))

    def render(self, label: Label, like: str) -> str:
        """Write a label as a cell, in the manner of the cell it replaces."""
        return json.dumps(label, ensure_ascii=like.isascii() and "\\u" in like)


TextLayout = Separated | JsonLines


def text_layout(manifest: Manifest, data: bytes) -> TextLayout | None:
    """Find the records and label cells of a text manifest.

    Args:
        manifest: What was read from `data`.
        data: The file's content.

    Returns:
        None where the form is no text, or where what was found does not agree with what was read:
        then nothing may be edited in place.
    """
    suffix, name = manifest.source.suffix.lower(), manifest.label_col
    if name is None or manifest.source.is_dir():
        return None
    layout: TextLayout | None = None
    if suffix == ".jsonl":
        layout = JsonLines.parse(data, name)
    elif suffix in _DELIMITERS:
        layout = Separated.parse(data, _DELIMITERS[suffix], manifest.table.column_names, name)
    if layout is None or len(layout.records) != len(manifest):
        return None
    given = cell_texts(manifest.table.column(name))
    found = (plain_label(layout, record) for record in layout.records)
    return layout if all(one == two for one, two in zip(given, found, strict=True)) else None


def cell_text(layout: TextLayout, record: bytes) -> str:
    """Give the label cell of a record as it stands in the file."""
    start, end = layout.cell(record)
    return record[start:end].decode("utf-8", "surrogatepass")


def plain_label(layout: TextLayout, record: bytes) -> str:
    """Give the label of a record as text, without quotes."""
    text = cell_text(layout, record)
    if isinstance(layout, JsonLines):
        value = json.loads(text)
        return value if isinstance(value, str) else text
    closing = text.rfind('"')
    if text.startswith('"') and closing > 0:
        return text[1:closing].replace('""', '"') + text[closing + 1 :]
    return text


def edited(layout: TextLayout, record: bytes, text: str) -> bytes:
    """Give a record with another label cell."""
    start, end = layout.cell(record)
    return record[:start] + text.encode("utf-8", "surrogatepass") + record[end:]


def relabelled(layout: TextLayout, labels: Mapping[int, Label], dropped: frozenset[int]) -> bytes:
    """Give the file with some labels replaced and some records left out.

    Args:
        layout: The file.
        labels: Row to its new label.
        dropped: Rows to leave out.
    """
    parts = [layout.head]
    for row, record in enumerate(layout.records):
        if row in dropped:
            continue
        if row in labels:
            text = layout.render(labels[row], cell_text(layout, record))
            record = edited(layout, record, text)  # noqa: PLW2901
        parts.append(record)
    return b"".join([*parts, layout.tail])


def _value_span(text: str, name: str) -> tuple[int, int]:
    """Find the value of a key of the outermost object; the last one counts, as in json.loads."""
    decoder, space = json.JSONDecoder(), re.compile(r"[ \t\r\n]*")
    span = (0, 0)

    def skip(position: int) -> int:
        found = space.match(text, position)
        return found.end() if found else position

    position = skip(text.index("{") + 1)
    while text[position] == '"':
        key, position = decoder.raw_decode(text, position)
        start = skip(skip(position) + 1)
        _, position = decoder.raw_decode(text, start)
        if key == name:
            span = (start, position)
        position = skip(position)
        if text[position] == "}":
            break
        position = skip(position + 1)
    return span
