"""Tables of generated schemas through read, export in every form, patch and revert.

`PYTHONPATH=tests python -m faults.schemas --schemas 2000`

Every type that a Parquet file may carry is drawn, nested up to three deep. A table is either read
and comes through every form with its rows, labels and values, or is refused before anything is
computed; a form that cannot carry a column says so. One table in fifty is audited, too.
"""

import argparse
import datetime
import decimal
import json
import sys
import tempfile
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from labelclean.correction.outcome import ExportPolicy, Findings, apply_policy
from labelclean.data.manifest import Manifest
from labelclean.data.read import read_manifest
from labelclean.errors import DataError, LabelCleanError
from labelclean.outputs import run_folder
from labelclean.outputs.patch_file import format_patch, read_patch
from labelclean.outputs.run_json import RUN_SCHEMA
from labelclean.recipe import load_recipe
from labelclean.runs.reading import OpenedRun
from labelclean.workflows.export import Form, make_patch, write_export
from labelclean.workflows.revert import revert
from planted import command

ROWS = 6
EVERY = 50
FORMS = ("parquet", "csv", "tsv", "jsonl")
EPOCH = datetime.datetime(2020, 1, 2, 3, 4, 5)
LEAVES = {
    "bool": pa.bool_(), "int8": pa.int8(), "uint8": pa.uint8(), "int16": pa.int16(),
    "uint16": pa.uint16(), "int32": pa.int32(), "uint32": pa.uint32(), "int64": pa.int64(),
    "uint64": pa.uint64(), "half": pa.float16(), "float": pa.float32(), "double": pa.float64(),
    "text": pa.string(), "large text": pa.large_string(), "text view": pa.string_view(),
    "bytes": pa.binary(), "large bytes": pa.large_binary(), "bytes view": pa.binary_view(),
    "fixed bytes": pa.binary(5), "date32": pa.date32(), "date64": pa.date64(),
    "time s": pa.time32("s"), "time ms": pa.time32("ms"), "time us": pa.time64("us"),
    "time ns": pa.time64("ns"), "stamp s": pa.timestamp("s"), "stamp ms": pa.timestamp("ms", "UTC"),
    "stamp us": pa.timestamp("us", "Europe/Berlin"), "stamp ns": pa.timestamp("ns", "+05:30"),
    "odd zone": pa.timestamp("us", "Foo/Bar"), "span s": pa.duration("s"),
    "span ms": pa.duration("ms"), "span us": pa.duration("us"), "span ns": pa.duration("ns"),
    "decimal32": pa.decimal32(6, 2), "decimal64": pa.decimal64(12, 3),
    "decimal128": pa.decimal128(20, 4), "decimal256": pa.decimal256(60, 5), "null": pa.null(),
    "uuid": pa.uuid(), "json": pa.json_(), "bool8": pa.bool8(),
    "opaque": pa.opaque(pa.string(), "kind", "maker"),
}  # fmt: skip


def draw_type(rng: np.random.Generator, depth: int = 0) -> pa.DataType:  # noqa: PLR0911
    """Draw a type: a leaf, or something made of drawn types."""
    if depth > 2 or rng.random() < 0.55:
        names = list(LEAVES)
        return LEAVES[names[rng.integers(len(names))]]
    inner = draw_type(rng, depth + 1)
    shape = rng.integers(9)
    if shape == 0:
        return pa.list_(inner)
    if shape == 1:
        return pa.large_list(inner)
    if shape == 2:
        return pa.list_(inner, 2)
    if shape == 3:
        return pa.list_view(inner)
    if shape == 4:
        return pa.map_(pa.string(), inner)
    if shape == 5:
        return pa.dictionary(pa.int32(), LEAVES[("text", "int64", "bytes")[rng.integers(3)]])
    if shape == 6:
        return pa.large_list_view(inner)
    twice = rng.random() < 0.05
    names = ("a", "a") if twice else ("a", "b")
    return pa.struct([(names[0], inner), (names[1], draw_type(rng, depth + 1))])


def draw_value(rng: np.random.Generator, kind: pa.DataType) -> object:  # noqa: C901, PLR0911, PLR0912
    """Draw a value of a type, sometimes none."""
    if rng.random() < 0.2 or pa.types.is_null(kind):
        return None
    is_ = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        plain = {"arrow.uuid": uuid.UUID(int=int(rng.integers(1 << 60))).bytes, "arrow.json": "{}"}
        return plain.get(kind.extension_name, "x" if is_.is_string(kind.storage_type) else 1)
    if is_.is_dictionary(kind):
        return draw_value(rng, kind.value_type)
    if is_.is_struct(kind):
        if len({one.name for one in kind}) < kind.num_fields:
            return None
        return {one.name: draw_value(rng, one.type) for one in kind}
    if is_.is_map(kind):
        return [(key, draw_value(rng, kind.item_type)) for key in "xy"[: rng.integers(3)]]
    if is_.is_fixed_size_list(kind):
        return [draw_value(rng, kind.value_type) for _ in range(2)]
    if is_.is_nested(kind):
        return [draw_value(rng, kind.value_type) for _ in range(rng.integers(3))]
    if is_.is_boolean(kind):
        return bool(rng.integers(2))
    if is_.is_integer(kind):
        bits = kind.bit_width
        low, high = (
            (0, 2**bits - 1)
            if str(kind).startswith("u")
            else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )
        return (low, high, 1)[rng.integers(3)]
    if is_.is_floating(kind):
        return (0.5, -2.0, float("nan"), float("inf"), 1e4)[rng.integers(5)]
    if is_.is_decimal(kind):
        return decimal.Decimal(int(rng.integers(10**4))).scaleb(-kind.scale)
    if is_.is_date(kind):
        return EPOCH.date()
    if is_.is_time(kind):
        return EPOCH.time()
    if is_.is_timestamp(kind):
        return int(rng.integers(10**9)) if rng.random() < 0.98 else 2**62
    if is_.is_duration(kind):
        return int(rng.integers(10**9)) if rng.random() < 0.98 else 2**62
    if is_.is_fixed_size_binary(kind):
        return b"12345"
    if "binary" in str(kind):
        return bytes(rng.integers(0, 256, rng.integers(4), dtype=np.uint8))
    return ("", "x", "=1+1", "two\nlines", 'say "x"', "007", "\u00e9")[rng.integers(7)]


def draw_column(rng: np.random.Generator, kind: pa.DataType) -> pa.Array:
    """Draw a column, by way of the storage where the type is an extension."""
    values = [draw_value(rng, kind) for _ in range(ROWS)]
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    return pa.array(values, kind)


def draw_table(rng: np.random.Generator) -> pa.Table | None:
    """Draw a table with one to five columns; None where Arrow itself cannot make it."""
    text, number = pa.array(list("xyxyxy")), pa.array([1, 2] * 3)
    large = pa.array([2**64 - 1, 2] * 3, pa.uint64())
    label = [text, number, text.cast(pa.large_string()), text.cast(pa.string_view()),
             text.dictionary_encode(), number.cast(pa.uint8()), large]  # fmt: skip
    columns = [("image", pa.array([f"{row}.png" for row in range(ROWS)])),
               ("label", label[int(rng.integers(7)) if rng.random() < 0.5 else 0])]  # fmt: skip
    try:
        for at in range(rng.integers(1, 6)):
            columns.append((f"c{at}", draw_column(rng, draw_type(rng))))
    except (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError):
        return None
    if rng.random() < 0.03:
        columns.append((columns[-1][0], pa.array(range(ROWS))))
    order = rng.permutation(len(columns))
    fields = [
        pa.field(columns[at][0], columns[at][1].type,
                 metadata={"note": "mine"} if rng.random() < 0.2 else None) for at in order
    ]  # fmt: skip
    return pa.table([columns[at][1] for at in order], schema=pa.schema(fields))


@dataclass
class Tally:
    """What came of the tables; `faults` must be empty."""

    counts: Counter = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def _folder(folder: Path, source: Path, manifest: Manifest) -> Path:
    """Write what a revert asks a run folder for."""
    run = folder / "run"
    run.mkdir(exist_ok=True)
    facts = {
        "schema_version": RUN_SCHEMA, "files": {}, "counts": {}, "classes": list(manifest.classes),
        "input": {"digest": manifest.digest, "path": f"../{source.name}", "image_root": ".."},
        "columns": {"image": "image", "label": "label"}, "recipe": load_recipe(None).plain(),
    }  # fmt: skip
    (run / "run.json").write_text(json.dumps(facts, default=str))
    return run


def _exported(folder: Path, source: Path, manifest: Manifest, tally: Tally) -> None:
    run = OpenedRun(_folder(folder, source, manifest), {}, manifest)
    row = np.arange(ROWS)
    action = np.array(["relabel", "drop", "keep", "keep", "relabel", "keep"], dtype=object)
    found = Findings(row, 1 - manifest.label, action, np.full(ROWS, 0.5), np.full(ROWS, 0.9))
    outcome = apply_policy(manifest, found, ExportPolicy())
    patch = folder / "p.patch.jsonl"
    patch.write_bytes(format_patch(make_patch(run, outcome)))
    wanted = [str(name) for name in outcome.corrected(evidence=False).label_values()]
    for form in FORMS:
        for evidence in (False, True):
            target = folder / f"out.{form}"
            try:
                write_export(run, outcome, target, Form(evidence=evidence, overwrite=True))
            except LabelCleanError:
                tally.counts[f"{form} cannot carry it"] += 1
                continue
            again = read_manifest(target, need_images=False)
            if [str(name) for name in again.label_values()] != wanted:
                raise AssertionError(f"{form}: other labels")
            if list(again.path) != [f"{at}.png" for at in row if at != 1]:
                raise AssertionError(f"{form}: other pictures")
            tally.counts[f"{form} read again"] += 1
            back = folder / "back.parquet"
            back.unlink(missing_ok=True)
            if form == "parquet" and not evidence:
                same = revert(run.folder, read_patch(patch), target, back)
                if not same or back.read_bytes() != source.read_bytes():
                    raise AssertionError("the revert gave other bytes")
                tally.counts["reverted"] += 1


def _audited(folder: Path, source: Path) -> None:
    probs = np.full((ROWS, 2), 0.5, np.float32)
    np.save(folder / "probs.npy", probs)
    flags = ("--pred-probs", folder / "probs.npy", "--out", folder / "audit", "--overwrite")
    for words in (("audit", source, *flags), ("verify", folder / "audit")):
        done = command(*words)
        if done.exit_code:
            why = f"{done.output[-300:]} {done.exception!r}"
            raise AssertionError(f"{words[0]}: exit {done.exit_code} {why}")


def one_schema(folder: Path, seed: int, tally: Tally) -> None:
    """Draw a table, and hold every step to it."""
    rng = np.random.default_rng(seed)
    table, source = draw_table(rng), folder / "data.parquet"
    if table is None:
        tally.counts["not made"] += 1
        return
    try:
        pq.write_table(table, source)
    except (pa.ArrowException, OSError):
        tally.counts["not made"] += 1
        return
    tally.counts["schemas"] += 1
    try:
        try:
            manifest = read_manifest(source, need_images=False)
        except DataError:
            tally.counts["refused when read"] += 1
            return
        _exported(folder, source, manifest, tally)
        if tally.counts["schemas"] % EVERY == 1:
            _audited(folder, source)
            tally.counts["audited"] += 1
    except Exception as error:  # whatever it is, it is what we look for
        names = [f"{one.name}: {one.type}" for one in table.schema]
        tally.faults.append(f"seed {seed}: {type(error).__name__}: {str(error)[:300]} in {names}")


def run_schemas(folder: Path, count: int, seed: int = 0) -> Tally:
    """Draw tables until so many could be made."""
    tally = Tally()
    while tally.counts["schemas"] < count:
        one_schema(folder, seed, tally)
        seed += 1
    return tally


def main() -> int:
    """Print the tally; exit code 1 where a table ended in anything but values or a refusal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schemas", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    run_folder.matrix_png = lambda *_, **__: b"a picture"
    with tempfile.TemporaryDirectory() as name:
        tally = run_schemas(Path(name), asked.schemas, asked.seed)
    sys.stdout.write("\n".join([*tally.faults[:20], json.dumps(tally.counts, indent=1), ""]))
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
