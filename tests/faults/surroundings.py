"""Commands in a world that fails them: a small file system that is full, little memory.

`PYTHONPATH=tests python -m faults.surroundings --disks 60 --memories 60`

The disk is a tmpfs of its own (root alone can mount one), filled until a drawn number of bytes is
free: from none to all that a command writes, so that every phase meets the end of it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from faults.fork import run
from faults.table import warm_up

if TYPE_CHECKING:
    from faults.trials import Stage, Trial, Undisturbed

MEGABYTE = 2**20
DISK, MEMORY = "disk full", "memory limit"
MOST_MEMORY = 96 * MEGABYTE
_PAGE = 4096


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path | None]:
    """Mount a file system of this size; None where we may not."""
    with tempfile.TemporaryDirectory() as name:
        words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", name]
        done = subprocess.run(words, capture_output=True, check=False)
        if done.returncode:
            yield None
            return
        try:
            yield Path(name).resolve()
        finally:
            subprocess.run(["umount", name], check=True)


def fill(disk: Path, free: int) -> Path:
    """Fill a file system until so many bytes are free."""
    found = os.statvfs(disk)
    filler = disk / "filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, found.f_bavail * found.f_frsize - free))
    return filler


def full_disk(stage: "Stage", known: "Undisturbed", share: float) -> "Trial":
    """Let a command find so much of the space it takes."""
    disk = stage.folder
    took = sum(-(-size // _PAGE) * _PAGE for size in known.sizes) + 16 * _PAGE

    def disturbed() -> object:
        fill(disk, int(share * took))
        return run(known.scene.arguments(stage.theatre), stage.theatre)

    return stage.hold(known, DISK, DISK, disturbed, (disk / "filler").unlink)


def little_memory(stage: "Stage", known: "Undisturbed", spare: int) -> "Trial":
    """Let a command take only so much memory."""
    words = known.scene.arguments(stage.theatre)
    return stage.hold(known, MEMORY, MEMORY, lambda: run(words, stage.theatre, spare=spare))


def main() -> int:
    """Print the counts; exit code 1 if anything was lost or mixed up, or ended in a traceback."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--disks", type=int, default=60)
    parser.add_argument("--memories", type=int, default=60)
    parser.add_argument("--quick", action="store_true", help="only the scenes that take a moment")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    warm_up()
    from faults.scenes import SCENES
    from faults.trials import Stage

    rng = np.random.default_rng(asked.seed)
    scenes = tuple(scene for scene in SCENES if scene.quick or not asked.quick)
    counts: Counter[str] = Counter()
    bad: list[str] = []

    def note(trial: "Trial") -> None:
        counts[trial.what] += 1
        if trial.faults:
            bad.append(str(trial))
            sys.stderr.write(f"{trial}\n")

    with small_disk(256) as disk, tempfile.TemporaryDirectory() as plain:
        stage = Stage(disk or Path(plain).resolve(), scenes)
        for at in range(asked.disks if disk else 0):
            note(full_disk(stage, stage.undisturbed[at % len(scenes)], rng.uniform(0, 1)))
        for at in range(asked.memories):
            spare = int(MOST_MEMORY * rng.uniform(0, 1) ** 2)
            note(little_memory(stage, stage.undisturbed[at % len(scenes)], spare))
    sys.stdout.write(json.dumps({**counts, "bad": bad}, indent=1) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
