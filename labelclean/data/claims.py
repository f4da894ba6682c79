"""What .npz and Parquet files claim to hold, before any of it is unpacked."""

import io
import math
import zipfile
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_ENDING = ".npy"
_SHORT = 1024  # stored bytes a cell; longer ones are hardly repeated
_READ_HEADER = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True, slots=True)
class ArrayHeader:
    """What an array claims.

    Args:
        shape: Its shape.
        dtype: Its type.
    """

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        """Bytes it takes unpacked."""
        return math.prod(self.shape) * self.dtype.itemsize


def npz_headers(data: bytes) -> dict[str, ArrayHeader]:
    """Read what the arrays of an archive claim; nothing else is unpacked.

    Raises:
        ValueError: One claims more than the archive holds of it, or is no plain array.
        zipfile.BadZipFile: It is no archive.
    """
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(_ENDING)
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                if version not in _READ_HEADER:
                    raise ValueError(f"array {name} has the unknown format {version}")
                shape, _, kind = _READ_HEADER[version](file)
            head = ArrayHeader(tuple(map(int, shape)), kind)
            if kind.hasobject:
                raise ValueError(f"array {name} holds Python objects")
            if min(head.shape, default=0) < 0 or head.nbytes > member.file_size:
                raise ValueError(
                    f"array {name} claims shape {head.shape}, more than is stored of it"
                )
            found[name] = head
    return found


def parquet_bytes(data: bytes, claimed: pq.FileMetaData, most: float) -> int:
    """Give the bytes that a Parquet file unpacks to, as far as they are known beforehand.

    A dictionary stores a long cell once, however many rows repeat it, so columns of cells that
    look short and may be long are looked at as they are stored.

    Args:
        data: The file.
        claimed: Its footer.
        most: Bytes from which on it is worth a look.

    Raises:
        pa.ArrowException: The file is damaged.
    """
    total = 0
    at_most: dict[str, int] = {}
    stored: dict[str, int] = {}
    for at in range(claimed.num_row_groups):
        group = claimed.row_group(at)
        total += group.total_byte_size
        for place in range(group.num_columns):
            part = group.column(place)
            name, size = part.path_in_schema, part.total_uncompressed_size
            if part.physical_type == "BYTE_ARRAY" and part.has_dictionary_page:
                at_most[name] = at_most.get(name, 0) + part.num_values * size
                stored[name] = stored.get(name, 0) + size
    short = _SHORT * max(1, claimed.num_rows)
    for name, bound in at_most.items():
        if bound > most and stored[name] < short and "." not in name:
            buffer = pa.BufferReader(data)
            column = pq.read_table(buffer, columns=[name], read_dictionary=[name]).column(0)
            total += sum(map(_plain_bytes, column.chunks))
    return total


def _plain_bytes(part: pa.Array) -> int:
    if not pa.types.is_dictionary(part.type):
        return int(part.nbytes)
    length = pc.binary_length(part.dictionary).fill_null(0).cast(pa.int64())
    return int(pc.sum(length.take(part.indices)).as_py() or 0)
