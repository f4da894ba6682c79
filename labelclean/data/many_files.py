"""Manifests that are several files: which they are, and Parquet files read as one table."""

import hashlib
import itertools
import math
import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from labelclean.data.budget import Budget
from labelclean.data.places import Place, RemotePath
from labelclean.data.tables import RawTable, read_table_file
from labelclean.data.tar_shards import ENDING
from labelclean.data.webdataset import read_tars
from labelclean.errors import DataError, shortlist

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_MOST_SHARDS = 100_000
_PARQUET = ".parquet"


def is_pattern(place: Place) -> bool:
    """Tell whether a place stands for several, like `shards-{000..099}.tar`."""
    return _BRACES.search(str(place)) is not None


def plain_name(place: Place) -> str:
    """Give a name for what is made of a manifest: its own, without ending and braces."""
    return _BRACES.sub("", place.stem).rstrip("-_. ") or "dataset"


def pattern_root(place: Place) -> Place:
    """Give the nearest folder that stands for itself alone.

    Raises:
        DataError: There is none.
    """
    here = place
    while is_pattern(here):
        if here.parent == here:
            raise DataError(f"{place}: name one bucket or host; braces belong behind it.")
        here = here.parent
    return here


def expand(place: Place) -> list[str]:
    """Give the paths that a pattern stands for, as seen from `pattern_root`.

    Raises:
        DataError: A range is none, or there are too many.
    """
    root = pattern_root(place)
    text = str(place) if root == Path() else str(place)[len(str(root)) :].lstrip("/\\")
    options = [_options(place, inside) for inside in _BRACES.findall(text)]
    if math.prod(map(len, options)) > _MOST_SHARDS:
        raise DataError(f"{place} stands for more than {_MOST_SHARDS:,} files; name fewer.")
    fixed = _BRACES.split(text)[::2]
    return [
        "".join(itertools.chain(*itertools.zip_longest(fixed, chosen, fillvalue="")))
        for chosen in itertools.product(*options)
    ]


def _options(place: Place, inside: str) -> Sequence[str]:
    found = _RANGE.fullmatch(inside)
    if found is None:
        return inside.split(",")
    first, last = int(found[1]), int(found[2])
    if not 0 <= last - first < _MOST_SHARDS:
        raise DataError(
            f"{place}: {{{inside}}} is no range of shards; write for example {{000..099}}."
        )
    width = len(found[1]) if len(found[1]) == len(found[2]) else 0
    return [f"{number:0{width}d}" for number in range(first, last + 1)]


def shards_in(folder: Place) -> list[str]:
    """List the shards of a folder in order: its tar files, else its Parquet files."""
    if isinstance(folder, RemotePath):
        names = folder.files()
    else:
        inside = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        shown = (path for path in inside if not any(part.startswith(".") for part in path.parts))
        names = sorted(path.as_posix() for path in shown)
    for ending in (ENDING, _PARQUET):
        found = [name for name in names if name.lower().endswith(ending)]
        if found:
            return found
    return []


def read_shards(root: Place, names: Sequence[str], need_labels: bool, budget: Budget) -> RawTable:
    """Read shards of one kind, tar or Parquet, as one table.

    Args:
        root: The folder they are seen from, and pictures in tar files too.
        names: The shards, in order.
        need_labels: Whether samples without a label are refused.
        budget: What they may claim.

    Raises:
        DataError: A shard is missing, damaged, or unlike the others; the message names it.
    """
    kinds = {posixpath.splitext(name)[1].lower() for name in names}
    if kinds == {ENDING}:
        return read_tars(root, names, need_labels, budget)
    if kinds == {_PARQUET}:
        return _read_parquets(root, names, budget)
    raise DataError(
        f"{root}: the shards end in {shortlist(sorted(kinds))}; they must all be .tar files, or "
        "all .parquet files."
    )


def _read_parquets(root: Place, names: Sequence[str], budget: Budget) -> RawTable:
    parts: list[RawTable] = []
    digest, rows = hashlib.sha256(), 0
    for name in names:
        part = read_table_file(root / name, True, budget)
        table = part.table.replace_schema_metadata(None)
        if parts and not table.schema.equals(parts[0].table.schema):
            raise DataError(
                f"the shard {root / name} has other columns than {root / names[0]}: "
                f"{_difference(table.schema, parts[0].table.schema)}. Write all shards alike."
            )
        if parts and part.origin != parts[0].origin:
            raise DataError(
                f"the shard {root / name} was written from elsewhere than {root / names[0]}; "
                "export all shards together, or audit them one by one."
            )
        digest.update(f"{name}\0{part.digest}\n".encode("utf-8", "surrogateescape"))
        parts.append(replace(part, table=table))
        rows += table.num_rows
        budget.require_rows(root, rows)
    table = pa.concat_tables([part.table for part in parts])
    whole = replace(parts[0], table=table, digest=digest.hexdigest())
    return whole if whole.origin else replace(whole, root=root)


def _difference(one: pa.Schema, other: pa.Schema) -> str:
    lines = sorted({str(field) for field in one} ^ {str(field) for field in other})
    return shortlist(lines) if lines else "the same ones in another order"
