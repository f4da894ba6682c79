"""Hostile .npy and .npz files."""

import io
import pickle
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from hostile_corpus.case import DONE, ROWS, Case, Poison, audit, labels
from planted import opinions


def build(folder: Path) -> Iterator[Case]:
    """Write all hostile arrays into a folder; unpickling one leaves the file `ran` there."""
    folder.mkdir(parents=True)
    pd.DataFrame({"label": labels()}).to_csv(folder / "data.csv", index=False)
    yield from _probabilities(folder)
    yield from _features(folder)
    yield from _archives(folder)


def _npy(array: np.ndarray, **options: object) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def _claims(shape: str) -> bytes:
    """An .npy file whose header claims more than there is."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header = header.ljust(118 - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 64


def _probabilities(folder: Path) -> Iterator[Case]:
    good = opinions(labels(), 3)
    poisoned = np.array([[Poison(folder / "ran")] * 3] * ROWS, dtype=object)
    holes = good.copy()
    holes[3, 1] = np.nan
    bad = {
        "object dtype with code inside": (_npy(poisoned, allow_pickle=True), "readable .npy"),
        "a bare pickle": (pickle.dumps(Poison(folder / "ran")), "readable .npy"),
        "NaN": (_npy(holes), "NaN"),
        "0 rows": (_npy(good[:0]), "shape"),
        "one dimension": (_npy(good[:, 0]), "shape"),
        "truncated": (_npy(good)[:-50], "readable .npy"),
        "a header that claims 10^15 rows": (_claims("(1000000000000000, 3)"), "readable .npy"),
        "a header that claims minus one row": (_claims("(-1, 3)"), "readable .npy"),
        "a header with code": (_claims("__import__('os').getpid()"), "readable .npy"),
        "complex numbers": (_npy(good.astype(complex)), "numbers"),
        "words": (_npy(good.astype(str)), "numbers"),
        "a structured type": (_npy(np.zeros((ROWS, 3), [("a", "f4")])), "numbers"),
        "rows that sum to two": (_npy(2 * good), "sum"),
        "negative numbers": (_npy(good - 1), ""),
        "another number of classes": (_npy(good[:, :2]), "columns"),
        "another number of rows": (_npy(good[:-1]), "rows"),
        "nothing": (b"", "readable .npy"),
    }
    for number, (name, (content, words)) in enumerate(bad.items()):
        path = folder / f"bad{number}.npy"
        path.write_bytes(content)
        yield Case(f"npy: {name}", _run(folder, path), words=words, foreign=("npy", path))
    fine = {
        "the other byte order": good.astype(">f8"),
        "Fortran order": np.asfortranarray(good),
        "half precision": good.astype(np.float16),
        "one sure answer for all": np.tile([1.0, 0, 0], (ROWS, 1)),
    }
    for number, (name, array) in enumerate(fine.items()):
        path = folder / f"fine{number}.npy"
        np.save(path, array)
        yield Case(f"npy: {name}", _run(folder, path), DONE, rows=ROWS, foreign=("npy", path))


def _run(folder: Path, probs: Path) -> tuple[object, ...]:
    return (*audit(folder / "data.csv", probs), "--overwrite")


def _features(folder: Path) -> Iterator[Case]:
    good = np.random.default_rng(0).normal(size=(ROWS, 4)) + 3 * np.eye(3, 4)[labels()]
    fine = {
        "the other byte order": good.astype(">f4"),
        "Fortran order": np.asfortranarray(good),
        "numbers near the largest": good * 1e37,
        "a column that never changes": np.hstack([good, np.ones((ROWS, 1))]),
        "one column": good[:, :1],
        "all rows alike": np.ones((ROWS, 4)),
        "integers": (good * 10).astype(np.int16),
    }
    for number, (name, array) in enumerate(fine.items()):
        path, out = folder / f"features{number}.npy", folder / f"features{number}-run"
        np.save(path, array)
        command = ("audit", folder / "data.csv", "--features", path, "--out", out, "--epochs", 1)
        flags = ("--loss", "cce", "--threads", "1")
        yield Case(f"features: {name}", (*command, *flags), DONE, rows=ROWS)


def _archives(folder: Path) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    good = (rng.normal(size=(ROWS, 4)) + 3 * np.eye(3, 4)[labels()]).astype(np.float32)
    poisoned = np.array([Poison(folder / "ran")] * ROWS, dtype=object)
    label = labels()
    holes = good.copy()
    holes[2] = np.inf
    bad = {
        "labels with code inside": ({"X": good, "y": poisoned}, "without Python objects"),
        "features with code inside": ({"X": poisoned, "y": label}, "without Python objects"),
        "no X": ({"Z": good, "y": label}, "no array X"),
        "no y": ({"X": good}, "no array y"),
        "y of another length": ({"X": good, "y": label[:-1]}, "must be"),
        "y of two dimensions": ({"X": good, "y": np.eye(3)[label]}, "must be"),
        "y of floats with NaN": ({"X": good, "y": np.full(ROWS, np.nan)}, "text or integers"),
        "infinite features": ({"X": holes, "y": label}, "not finite"),
        "pictures of floats": ({"X": rng.random((ROWS, 8, 8, 3)), "y": label}, "uint8"),
        "pictures without pixels": ({"X": np.zeros((ROWS, 0, 8), np.uint8), "y": label}, ""),
        "features without columns": ({"X": good[:, :0], "y": label}, ""),
        "no rows": ({"X": good[:0], "y": label[:0]}, ""),
        "complex features": ({"X": good.astype(complex), "y": label}, "features"),
        "five dimensions": ({"X": np.zeros((ROWS, 2, 2, 3, 1), np.uint8), "y": label}, "images"),
    }
    for number, (name, (arrays, words)) in enumerate(bad.items()):
        path = folder / f"bad{number}.npz"
        np.savez(path, **arrays)
        yield Case(f"npz: {name}", ("check", path), words=words)
    np.savez(folder / "whole.npz", X=good, y=label)
    whole = (folder / "whole.npz").read_bytes()
    files = {
        "truncated": whole[:-100],
        "an .npy": _npy(good),
        "zeros": bytes(500),
        "a bare pickle": pickle.dumps(Poison(folder / "ran")),
    }
    for name, content in files.items():
        path = folder / f"{name.replace(' ', '_')}.npz"
        path.write_bytes(content)
        yield Case(f"npz: {name}", ("check", path), words="readable .npz")
