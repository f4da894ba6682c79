"""Fuzz every reader: `PYTHONPATH=tests python -m fuzz.run --inputs 10000`."""

import argparse
import contextlib
import sys
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

from fuzz.readers import READERS
from labelclean.errors import LabelCleanError


def fuzz(name: str, folder: Path, count: int) -> dict[str, int]:
    """Give a reader `count` inputs; what is not our own error escapes, with its input."""
    reader = READERS[name](folder)
    tally = {"tried": 0, "understood": 0, "refused": 0}

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(reader.strategy)
    def one(data: tuple[str, bytes]) -> None:
        tally["tried"] += 1
        with contextlib.suppress(LabelCleanError):
            reader.read(data)
            tally["understood"] += 1

    one()
    tally["refused"] = tally["tried"] - tally["understood"]
    return tally


def main() -> int:
    """Print one line per reader."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--reader", choices=list(READERS), action="append")
    asked = parser.parse_args()
    sys.stdout.write("| reader | inputs | understood | refused with a message | anything else |\n")
    for name in asked.reader or READERS:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found = fuzz(name, Path(folder), asked.inputs)
        numbers = f"{found['tried']} | {found['understood']} | {found['refused']} | 0"
        sys.stdout.write(f"| {name} | {numbers} | ({time.perf_counter() - began:.0f} s)\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
