"""Tar shards of samples as WebDataset writes them, read as a table of paths and labels."""

import hashlib
import json
import posixpath
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from labelclean.data.budget import Budget
from labelclean.data.folders import IMAGE_SUFFIXES
from labelclean.data.places import Place
from labelclean.data.tables import RawTable, json_column
from labelclean.data.tar_shards import index_tar, read_span
from labelclean.errors import DataError, shortlist

LABEL_FIELDS = ("label", "labels", "class", "target", "y")
"""Entries of a sample's .json that may be its label; the first one present is."""
KEY = "__key__"
"""Column with the name a sample has in its shard."""
_IMAGE, _LABEL = "image", "label"
_SIDE_BYTES = 2**20  # of a label or a .json


def read_tars(root: Place, names: Sequence[str], need_labels: bool, budget: Budget) -> RawTable:
    """Read tar shards as one table: pictures are paths like `shard.tar/name.jpg`.

    Args:
        root: The folder they are seen from.
        names: The shards, in order.
        need_labels: Whether samples without a label are refused.
        budget: What they may claim.

    Raises:
        DataError: A shard is missing, damaged, or has two samples of one key.
    """
    columns: dict[str, list[object]] = {_IMAGE: [], KEY: []}
    digest, count = hashlib.sha256(), 0
    for name in names:
        for sample in _samples(root / name, name, need_labels, budget):
            for column, value in sample.items():
                columns.setdefault(column, [None] * count).append(value)
            count += 1
            for values in columns.values():
                values.extend([None] * (count - len(values)))
            digest.update(json.dumps(sample, sort_keys=True).encode() + b"\n")
        budget.require_rows(root / name, count)
        budget.require_columns(root / name, len(columns))
    if not count:
        raise DataError(f"{root}: the shards {shortlist(names, 3)} hold no samples.")
    made = [json_column(root / names[0], name, values) for name, values in columns.items()]
    return RawTable(pa.table(made, names=list(columns)), True, root, digest.hexdigest())


def _samples(shard: Place, name: str, need_labels: bool, budget: Budget) -> list[dict[str, object]]:
    """Give the samples of a shard: files that share their name up to its first dot."""
    if isinstance(shard, Path) and not shard.is_file():
        raise DataError(f"the shard {shard} does not exist; check the name and the range.")
    index = index_tar(shard, budget)

    def content(member: str) -> bytes:
        return read_span(index, str(shard), *index.members[member], _SIDE_BYTES)

    samples = []
    for key, files in _grouped(shard, index.members).items():
        pictures = [member for end, member in files.items() if f".{end}" in IMAGE_SUFFIXES]
        found = _described(shard, key, files, content)
        # A sample without a picture keeps its row and is told of as unreadable.
        sample = {_IMAGE: f"{name}/{pictures[0] if pictures else key}", KEY: key, **found}
        if need_labels and _LABEL not in sample:
            raise DataError(
                f"the shard {shard}: sample {key!r} has no label (it has {shortlist(files)}). A "
                f"label is a file KEY.cls, or an entry {' or '.join(LABEL_FIELDS)} of KEY.json."
            )
        samples.append(sample)
    return samples


def _grouped(shard: Place, members: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Give, for every key, the members of a shard by what follows the first dot."""
    groups: dict[str, dict[str, str]] = {}
    last = ""
    for member in members:
        folder, file = posixpath.split(member)
        stem, _, ending = file.partition(".")
        if not stem:
            continue
        key = posixpath.join(folder, stem)
        if (key in groups and key != last) or ending.lower() in groups.get(key, {}):
            raise DataError(
                f"the shard {shard}: the key {key!r} comes a second time, so two rows would have "
                "one key; write the shard again with a key for each sample."
            )
        groups.setdefault(key, {})[ending.lower()] = member
        last = key
    return groups


def _described(
    shard: Place, key: str, files: Mapping[str, str], content: Callable[[str], bytes]
) -> dict[str, object]:
    """Read the label and whatever else a sample's .json and .cls say."""
    found: dict[str, object] = {}
    try:
        if "json" in files:
            entries = json.loads(content(files["json"]))
            if not isinstance(entries, dict):
                raise ValueError(f"{files['json']} is no JSON object")
            found = dict(entries)
            name = next((field for field in LABEL_FIELDS if field in found), None)
            if name is not None:
                found[_LABEL] = found.pop(name)
        if "cls" in files:
            text = content(files["cls"]).decode("utf-8").strip()
            found[_LABEL] = int(text) if text.isascii() and text.isdigit() else text
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"the shard {shard}: what describes sample {key!r} cannot be read ({error}); write "
            "the shard again."
        ) from error
    clash = sorted({_IMAGE, KEY} & set(found))
    if clash:
        raise DataError(
            f"the shard {shard}: sample {key!r} has an entry {clash[0]!r}, a name that is used "
            "for its picture; call it something else."
        )
    return found
