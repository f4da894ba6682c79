"""Small files that claim to be huge; each is written in a moment and must be refused in one."""

import io
import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ZEROS = bytes(2**20)


def wide_csv(folder: Path) -> Path:
    """A header of 100,000 columns."""
    path = folder / "wide.csv"
    names = ",".join(["image", "label", *(f"c{at}" for at in range(100_000))])
    rows = "\n".join(",".join([f"{row}.png", "ab"[row % 2], *["1"] * 100_000]) for row in range(3))
    path.write_text(f"{names}\n{rows}\n")
    return path


def _archive(path: Path, arrays: dict[str, tuple[tuple[int, ...], str]]) -> Path:
    """Write an .npz of zeros without holding or packing more than a part of any of them."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (shape, kind) in arrays.items():
            head = io.BytesIO()
            facts = {"descr": kind, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(head, facts)
            parts, rest = divmod(int(np.prod(shape)) * np.dtype(kind).itemsize, len(ZEROS))
            if not parts:
                archive.writestr(f"{name}.npy", head.getvalue() + ZEROS[:rest])
                continue
            packer = zlib.compressobj(1, zlib.DEFLATED, -15)
            begin = packer.compress(head.getvalue()) + packer.flush(zlib.Z_FULL_FLUSH)
            # A part behind a full flush depends on nothing before it, so it can be repeated.
            part = packer.compress(ZEROS) + packer.flush(zlib.Z_FULL_FLUSH)
            end = packer.compress(ZEROS[:rest]) + packer.flush()
            _add_packed(archive, f"{name}.npy", begin + parts * part + end,
                        len(head.getvalue()) + parts * len(ZEROS) + rest)  # fmt: skip
    return path


def _add_packed(archive: zipfile.ZipFile, name: str, packed: bytes, size: int) -> None:
    """Add what is packed already; its checksum, which nobody reaches, is left out."""
    with archive.open(name, "w", force_zip64=True) as file:
        archive.fp.write(packed)
        file.close()
    found = archive.filelist[-1]
    found.file_size, found.compress_size = size, len(packed)


def deep_archive(folder: Path) -> Path:
    """Pictures that unpack to 15 GiB."""
    rows = 15 * 2**30 // (64 * 64)
    return _archive(folder / "deep.npz", {"X": ((rows, 64, 64), "|u1"), "y": ((rows,), "|u1")})


def unused_array(folder: Path) -> Path:
    """Four rows, and an array of 3 GiB that belongs to none of them."""
    arrays = {"X": ((4, 8), "<f4"), "y": ((4,), "<i8"), "more": ((3 * 2**30,), "|u1")}
    return _archive(folder / "unused.npz", arrays)


def lying_archive(folder: Path) -> Path:
    """An array whose header claims a terabyte that the archive does not hold."""
    path = folder / "lying.npz"
    head = io.BytesIO()
    facts = {"descr": "<f4", "fortran_order": False, "shape": (2**30, 2**8)}
    np.lib.format.write_array_header_1_0(head, facts)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", head.getvalue())
        archive.writestr("y.npy", head.getvalue())
    return path


def long_parquet(folder: Path) -> Path:
    """20 million equal rows."""
    path = folder / "long.parquet"
    part = 1_000_000
    columns = {
        "image": pa.DictionaryArray.from_arrays(pa.array(np.zeros(part, np.int32)), ["a.png"]),
        "label": pa.DictionaryArray.from_arrays(
            pa.array(np.arange(part) % 2, pa.int32()), ["x", "y"]
        ),
    }
    table = pa.table(columns)
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(table)
    return path


def fat_parquet(folder: Path) -> Path:
    """One cell of a megabyte, repeated by a dictionary in a million rows."""
    path = folder / "fat.parquet"
    rows = 1_000_000
    note = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["x" * 2**20])
    label = pa.array((np.arange(rows) % 2).astype(np.int64))
    image = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["a.png"])
    table = pa.table({"image": image, "label": label, "note": note})
    pq.write_table(table, path, store_schema=False, dictionary_pagesize_limit=2**22)
    return path


def nested_jsonl(folder: Path) -> Path:
    """Lists inside lists, 900 deep."""
    path = folder / "nested.jsonl"
    lines = [
        f'{{"image": "{row}.png", "label": "{"ab"[row % 2]}", "more": {"[" * 900}{"]" * 900}}}\n'
        for row in range(200)
    ]
    path.write_text("".join(lines))
    json.loads(lines[0])
    return path


def many_keys(folder: Path) -> Path:
    """Objects of 30,000 keys."""
    path = folder / "keys.jsonl"
    line = {"image": "a.png", "label": "a", **{f"k{at}": at for at in range(30_000)}}
    path.write_text(json.dumps(line) + "\n" + json.dumps({**line, "label": "b"}) + "\n")
    return path


BOMBS: tuple[tuple[Callable[[Path], Path], str], ...] = (
    (wide_csv, "columns"),
    (deep_archive, "bytes unpacked"),
    (unused_array, "more has shape"),
    (lying_archive, "more than is stored"),
    (long_parquet, "rows"),
    (fat_parquet, "bytes unpacked"),
    (nested_jsonl, "levels of values"),
    (many_keys, "columns"),
)
"""What writes it, and what the message says."""
