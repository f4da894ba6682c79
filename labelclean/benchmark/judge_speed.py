"""Time and memory of the judge and of cleanlab on memory-mapped probabilities, one thread."""

import importlib
import multiprocessing
import os
import tempfile
import time
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIZES = ((1_000_000, 10), (1_000_000, 100), (100_000, 5_000))
REPEATS = 4  # the best of them counts: other work on the machine only ever adds time
_BLOCK_NUMBERS = 1 << 24


def write_probs(path: Path, rows: int, classes: int, seed: int = 0) -> NDArray[np.int64]:
    """Write softmax probabilities of a good model as .npy, in blocks; give labels, 10 % flipped."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, rows)
    held = np.lib.format.open_memmap(path, "w+", np.float32, (rows, classes))
    step = max(1, _BLOCK_NUMBERS // classes)
    for begin in range(0, rows, step):
        part = true[begin : begin + step]
        logits = rng.standard_normal((len(part), classes), dtype=np.float32)
        logits[np.arange(len(part)), part] += np.float32(3 + np.log(classes))
        np.exp(logits, out=logits)
        held[begin : begin + step] = logits / logits.sum(axis=1, keepdims=True)
    held.flush()
    flipped = rng.random(rows) < 0.1
    return np.where(flipped, rng.integers(0, classes, rows), true)


def measure_judge_speed(against: bool = True) -> list[dict[str, Any]]:
    """Measure every size, each method in a process of its own with one thread."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count, classes in SIZES:
            path = Path(folder) / "probs.npy"
            label = write_probs(path, count, classes)
            row: dict[str, Any] = {"rows": count, "classes": classes}
            row["seconds"], row["extra_mb"] = _apart("labelclean", path, label)
            theirs = _apart("cleanlab", path, label) if against else (None, None)
            row["cleanlab_seconds"], row["cleanlab_extra_mb"] = theirs
            row["times"] = None if theirs[0] is None else theirs[0] / row["seconds"]
            rows.append(row)
            path.unlink()
    return rows


def _apart(method: str, path: Path, label: NDArray[np.int64]) -> tuple[float, float]:
    # Threads are fixed when the libraries load, so a fresh process is the only honest way.
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.apply(_time, (method, path, label))
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _time(method: str, path: Path, label: NDArray[np.int64]) -> tuple[float, float]:
    """Give the best of a few CPU times, and the peak of memory NumPy allocated on the way."""
    probs = np.load(path, mmap_mode="r", allow_pickle=False)
    home = "cleanlab.filter" if method == "cleanlab" else "labelclean.workflows.find"
    call: Any = importlib.import_module(home).find_label_issues
    options = {"n_jobs": 1} if method == "cleanlab" else {}
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(REPEATS):
            start = time.process_time()
            call(label, probs, **options)
            seconds.append(time.process_time() - start)
        tracemalloc.start()
        call(label, probs, **options)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return min(seconds), peak / 1e6
