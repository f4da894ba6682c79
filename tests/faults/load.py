"""Audits of very much data under a memory cap, in a process of its own, watched from outside.

`PYTHONPATH=tests python -m faults.load features --rows 1000000 --cap 8`
`PYTHONPATH=tests python -m faults.load images --rows 50000 200000 --cap 4`

Of several numbers of rows the memory that each further row takes is printed, too. Where other work
keeps the cores busy, `cpu_seconds` tells more than `seconds`.
"""

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GIGABYTE = 2**30
GIVES_BACK = {
    "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}  # fmt: skip
"""Environment in which freed memory returns at once: the peak is what is held, not what is kept."""
DIMENSIONS, CLASSES = 64, 100


def write_features(folder: Path, rows: int) -> list[str]:
    """Write a table and features of 100 overlapping classes, one label in ten wrong."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, CLASSES, rows)
    centres = rng.normal(0, 1, (CLASSES, DIMENSIONS))
    features = (centres[true] + rng.normal(0, 1, (rows, DIMENSIONS))).astype(np.float32)
    np.save(folder / "features.npy", features)
    _write_table(folder, true, CLASSES, rng)
    return [str(folder / "data.parquet"), "--features", str(folder / "features.npy")]


def write_images(folder: Path, rows: int) -> list[str]:
    """Write a table of 32-pixel PNG pictures in ten colours, one label in ten wrong."""
    from PIL import Image

    rng = np.random.default_rng(0)
    true = rng.integers(0, 10, rows)
    colours = rng.integers(40, 216, (10, 3))
    schema = pa.schema({"image": pa.binary(), "label": pa.int64(), "true_label": pa.int64()})
    given = _given(true, 10, rng)
    with pq.ParquetWriter(folder / "data.parquet", schema) as writer:
        for begin in range(0, rows, 10_000):
            part = slice(begin, begin + 10_000)
            pixels = rng.normal(colours[true[part], None, None], 40, (len(true[part]), 32, 32, 3))
            encoded = []
            for picture in pixels.clip(0, 255).astype(np.uint8):
                buffer = io.BytesIO()
                Image.fromarray(picture).save(buffer, "PNG", compress_level=1)
                encoded.append(buffer.getvalue())
            columns = [encoded, given[part], true[part]]
            writer.write_table(pa.table(columns, schema=schema))
    return [str(folder / "data.parquet"), "--backbone", "test_resnet", "--mode", "head",
            "--set", "model.pretrained=false", "--set", "model.image_size=32",
            "--cache-dir", str(folder / "cache")]  # fmt: skip


def _given(true: np.ndarray, classes: int, rng: np.random.Generator) -> np.ndarray:
    wrong = rng.random(len(true)) < 0.1
    return np.where(wrong, (true + rng.integers(1, classes, len(true))) % classes, true)


def _write_table(folder: Path, true: np.ndarray, classes: int, rng: np.random.Generator) -> None:
    table = pa.table({"label": _given(true, classes, rng), "true_label": true})
    pq.write_table(table, folder / "data.parquet")


@dataclass(frozen=True)
class Watched:
    """What a command took: exit code, resources, and (seconds, GB resident) once a second."""

    code: int
    usage: resource.struct_rusage
    seen: list[tuple[float, float]]

    @property
    def peak(self) -> float:
        return self.usage.ru_maxrss * 1024 / GIGABYTE


def watch(command: list[str], cap: float) -> Watched:
    """Run a command under a cap of private memory."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (int(cap * GIGABYTE),) * 2)

    began = time.perf_counter()
    env = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    process = subprocess.Popen(
        command,
        preexec_fn=limit,  # noqa: PLW1509 (no threads here)
        env={**env, **GIVES_BACK},
    )
    seen: list[tuple[float, float]] = []
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            return Watched(process.returncode, usage, seen)
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        memory = pages * os.sysconf("SC_PAGE_SIZE") / GIGABYTE
        seen.append((time.perf_counter() - began, memory))
        time.sleep(0.5)


def audit(kind: str, rows: int, cap: float, flags: list[str]) -> dict[str, object] | None:
    """Generate and audit; give what it took, None where it failed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write = write_features if kind == "features" else write_images
        arguments = write(folder, rows)
        out = ["--out", str(folder / "run"), "--truth-col", "true_label"]
        done = watch([sys.executable, "-m", "labelclean", "audit", *arguments, *out, *flags], cap)
        if done.code:
            return None
        found = pq.read_table(folder / "run/issues.parquet", columns=["row"])["row"].to_numpy()
        facts = json.loads((folder / "run/run.json").read_bytes())
    step = max(1, len(done.seen) // 20)
    return {
        "rows": rows, "every row once": np.array_equal(np.sort(found), np.arange(rows)),
        "cap_gb": cap, "peak_gb": round(done.peak, 4), "seconds": round(done.seen[-1][0]),
        "cpu_seconds": round(done.usage.ru_utime + done.usage.ru_stime),
        "timings": facts["timings"], "noise_rate": facts["noise_rate"], "truth": facts["truth"],
        "memory over time": " ".join(f"{s:.0f}s:{m:.1f}GB" for s, m in done.seen[::step]),
    }  # fmt: skip


def main() -> int:
    """Print what the audits took; exit code 1 where one failed or lost a row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["features", "images"])
    parser.add_argument("--rows", type=int, nargs="+", required=True)
    parser.add_argument("--cap", type=float, required=True, help="gigabytes of private memory")
    parser.add_argument("--threads", default="1")
    asked, more = parser.parse_known_args()
    flags = ["--threads", asked.threads, *more]
    found = []
    for rows in asked.rows:
        took = audit(asked.kind, rows, asked.cap, flags)
        if took is None:
            return 1
        sys.stdout.write(json.dumps(took, indent=1) + "\n")
        found.append((rows, took["peak_gb"], took["every row once"]))
    if len(found) > 1:
        (few, low, _), (many, high, _) = found[0], found[-1]
        each = (high - low) * GIGABYTE / (many - few)
        sys.stdout.write(f"{each:.0f} bytes for each further row\n")
    return 0 if all(whole for _, _, whole in found) else 1


if __name__ == "__main__":
    sys.exit(main())
