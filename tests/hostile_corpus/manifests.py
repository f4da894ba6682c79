"""Hostile tables and folders."""

import json
import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hostile_corpus.case import DONE, ROWS, Case, audit, labels, write_pictures, write_probs

NAMES = np.array(["ant", "bee", "cat"])
LONG = "x" * 1_000_000


def _frame(names: list[str], **columns: object) -> pd.DataFrame:
    return pd.DataFrame({"image": names, "label": NAMES[labels(len(names))], **columns})


def build(folder: Path) -> Iterator[Case]:
    """Write all hostile manifests into a folder."""
    folder.mkdir(parents=True)
    names = write_pictures(folder)
    probs = write_probs(folder / "probs.npy")
    yield from _cells(folder, names, probs)
    yield from _paths(folder, names)
    yield from _classes(folder)
    yield from _raw_text(folder)
    yield from _json_lines(folder)
    yield from _parquet(folder, names)


def _cells(folder: Path, names: list[str], probs: Path) -> Iterator[Case]:
    def table(name: str, frame: pd.DataFrame) -> Path:
        frame.to_csv(folder / name, index=False)
        return folder / name

    def fine(name: str, path: Path, *flags: object) -> Case:
        return Case(name, audit(path, probs, *flags), DONE, rows=ROWS, foreign=("csv", path))

    note = ["short"] * ROWS
    yield fine(
        "a cell of 10^6 characters", table("cell.csv", _frame(names, note=[LONG, *note[1:]]))
    )
    frame = _frame(names)
    frame.loc[frame["label"] == "ant", "label"] = LONG
    yield fine("a label of 10^6 characters", table("label.csv", frame))
    yield fine("NUL bytes in cells", table("nul.csv", _frame(names, note=["a\0b"] * ROWS)))
    frame = _frame(names)
    frame["label"] = frame["label"] + "\0" + frame["label"]
    yield fine("NUL bytes in labels", table("nul_label.csv", frame))
    for name in ("p_error", "label_given", "label_action", "label_confidence"):
        path = table(f"own_{name}.csv", _frame(names, **{name: note}))
        yield Case(f"a column of ours: {name}", audit(path, probs), words=name)
    clash = _frame(names, rank=note, row=note, suspicion=note, reason=note)
    yield fine("columns named as those of issues.parquet", table("issues.csv", clash))
    path = table("escaped.csv", _frame(names, labelclean_escaped=[""] * ROWS))
    yield fine("a column that says cells are escaped", path)
    yield fine("formulas in cells", table("formula.csv", _frame(names, note=["=1+1"] * ROWS)))
    path = table("ids.csv", _frame(names, sample_id=["same"] * ROWS))
    yield Case("one sample_id for all rows", audit(path, probs), words="repeated")
    path = table("weight.csv", _frame(names, sample_weight=["-inf"] * ROWS))
    yield Case("weights of minus infinity", audit(path, probs), words="sample_weight")
    path = table("verified.csv", _frame(names, verified=["maybe"] * ROWS))
    yield Case("verified that is neither true nor false", audit(path, probs), words="verified")


def _paths(folder: Path, names: list[str]) -> Iterator[Case]:
    def check(name: str, first: str, code: int = DONE, words: str = "1 of") -> Case:
        path = folder / f"path{len(list(folder.glob('path*')))}.csv"
        _frame([first, *names[1:]]).to_csv(path, index=False)
        return Case(name, ("check", path, "--workers", "1"), code, words, foreign=("csv", path))

    picture = (folder / names[0]).read_bytes()
    odd = {
        "line break": "images/two\nlines.png",
        "quote and comma": 'images/a",b.png',
        "leading dash": "images/-rf.png",
        "right-to-left mark": "images/\u202egnp.png",
    }
    for name, text in odd.items():
        (folder / text).write_bytes(picture)
        yield check(f"a file name with a {name}", text, words="")
    twins = [unicodedata.normalize(form, "images/é.png") for form in ("NFC", "NFD")]
    for number, text in enumerate(twins):
        (folder / text).write_bytes((folder / names[number]).read_bytes())
    path = folder / "twins.csv"
    _frame([*twins, *names[2:]]).to_csv(path, index=False)
    yield Case("names that differ in Unicode normalisation only", ("check", path), DONE)
    yield check("a path of 600 steps that stays inside", "images/../" * 600 + names[0], words="")
    yield check("Windows separators", names[0].replace("/", "\\"), words="")
    yield check("a path of 10^6 characters", LONG, words="unreadable")
    yield check("a NUL byte in a path", "images/\0.png", words="unreadable")
    yield check("a path that climbs out", "../" * 40 + "etc/passwd", 3, "leave the folder")
    yield check("an absolute path", "/etc/passwd", 3, "leave the folder")
    yield check("a path on a Windows drive", "C:\\Windows\\win.ini", 3, "leave the folder")
    (folder / "images/out.png").symlink_to("/etc/passwd")
    yield check("a link out of the folder", "images/out.png", words="unreadable")
    os.mkfifo(folder / "images/pipe.png")
    yield check("a named pipe", "images/pipe.png", words="unreadable")
    yield check("a device", "/dev/zero", 3, "leave the folder")


def _classes(folder: Path) -> Iterator[Case]:
    many = pd.DataFrame({"label": [f"c{row}" for row in range(100_000)]})
    many.to_csv(folder / "many.csv", index=False)
    np.save(folder / "many.npy", np.zeros((100_000, 1), np.float32))
    command = ("audit", folder / "many.csv", "--features", folder / "many.npy")
    yield Case("100,000 classes", (*command, "--out", folder / "many"), words="100000 classes")
    rows = 4000
    label = np.zeros(rows, int)
    label[: rows // 1000] = 1
    pd.DataFrame({"label": label}).to_csv(folder / "rare.csv", index=False)
    probs = np.random.default_rng(0).dirichlet((20, 1), rows)
    np.save(folder / "rare.npy", probs)
    path = folder / "rare.csv"
    yield Case(
        "one class with 99.9 % of the rows", audit(path, folder / "rare.npy"), DONE, rows=rows
    )
    pd.DataFrame({"label": ["a"] * 50}).to_csv(folder / "one.csv", index=False)
    path = folder / "one.csv"
    yield Case("one class only", audit(path, folder / "probs.npy"), words="at least two classes")


def _raw_text(folder: Path) -> Iterator[Case]:
    raw = {
        "UTF-16": ("image,label\na,b\n".encode("utf-16"), "UTF-16"),
        "Latin-1": ("image,label\né,b\n".encode("latin-1"), "not UTF-8"),
        "rows of different length": (b"image,label\na,b,c\na\n", "cells instead of"),
        "a quote that never closes": (b'image,label\n"a,b\nc,d\n', "quotes"),
        "a column name twice": (b"image,label,label\na,b,c\n", "more than once"),
        "nothing at all": (b"", "empty"),
        "a header only": (b"image,label\n", "no rows"),
        "an ELF program named .csv": (b"\x7fELF\x02\x01\x01\0\xff\xfe" * 50, "not UTF-8"),
        "NUL bytes only": (b"\0" * 1000, "cannot be read as a table"),
        "10,000 columns": (b",".join(b"c%d" % i for i in range(10_000)) + b"\n" + b"," * 9999
                           + b"\n", "no image column"),
    }  # fmt: skip
    for number, (name, (content, words)) in enumerate(raw.items()):
        path = folder / f"raw{number}.csv"
        path.write_bytes(content)
        yield Case(f"csv: {name}", ("check", path), words=words, foreign=("csv", path))


def _json_lines(folder: Path) -> Iterator[Case]:
    lines = {
        "nested 100,000 deep": '{"image": "a", "label": ' + "[" * 100_000,
        "an integer of 5,000 digits": '{"image": "a", "label": ' + "9" * 5000 + "}",
        "an integer beyond 64 bits": '{"image": "a", "label": 99999999999999999999}',
        "a lone surrogate": '{"image": "a", "label": "\\ud800"}',
        "a list of labels": '{"image": "a", "label": ["x", "y"]}',
        "NaN as label": '{"image": "a", "label": NaN}',
        "an object as label": '{"image": "a", "label": {"x": 1}}',
        "no object": '["a", "b"]',
    }
    for number, (name, line) in enumerate(lines.items()):
        path = folder / f"lines{number}.jsonl"
        path.write_text(line + "\n" + line + "\n")
        yield Case(f"jsonl: {name}", ("check", path), words=path.name)


def _parquet(folder: Path, names: list[str]) -> Iterator[Case]:
    good = pa.table({"image": names, "label": NAMES[labels()]})
    pq.write_table(good, folder / "good.parquet")
    whole = (folder / "good.parquet").read_bytes()

    def table(name: str, made: pa.Table, words: str) -> Case:
        path = folder / f"table{len(list(folder.glob('table*')))}.parquet"
        pq.write_table(made, path)
        return Case(f"parquet: {name}", ("check", path), words=words)

    for name, content in {"truncated": whole[:-40], "only the magic": b"PAR1PAR1",
                          "text": b"image,label\n"}.items():  # fmt: skip
        path = folder / f"{name.replace(' ', '_')}.parquet"
        path.write_bytes(content)
        yield Case(f"parquet: {name}", ("check", path), words="Parquet")
    yield table("labels of lists", good.set_column(1, "label", [[["a"]] * ROWS]), "multi-label")
    yield table("labels of floats", good.set_column(1, "label", [[0.5] * ROWS]), "text or integers")
    yield table("labels of nulls", good.set_column(1, "label", pa.nulls(ROWS)), "missing or blank")
    yield table("paths of numbers", good.set_column(0, "image", [list(range(ROWS))]), "none of")
    for name, origin in {"an absolute image root": {"image_root": "/etc"},
                         "an image root that is a number": {"image_root": 3}}.items():  # fmt: skip
        marked = good.replace_schema_metadata({b"labelclean": json.dumps(origin).encode()})
        yield table(f"metadata of ours with {name}", marked, "image root")
    broken = good.replace_schema_metadata({b"labelclean": b"\xff{"})
    yield table("metadata of ours that is no JSON", broken, "metadata")
