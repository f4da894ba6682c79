"""Measure the pre-scan beside a plain loop over the same work; not a test.

usage: python -m tests.measure_scan MANIFEST [ROUNDS]

Each round runs the loop, then the scan, so that a busy machine disturbs both; run it on idle cores.
"""

import sys
import time
from statistics import median

from labelclean import read_manifest
from labelclean.data.scan import scan_images
from labelclean.data.sources import open_source


def main(path: str, rounds: int = 5) -> None:
    source = open_source(read_manifest(path))
    rows, ratios = len(source), []
    for number in range(rounds):
        began = time.perf_counter()
        for row in range(rows):
            source.inspect(row)
        looped = time.perf_counter() - began
        scan_images(source)
        scanned = time.perf_counter() - began - looped
        ratios.append(looped / scanned)
        print(  # noqa: T201
            f"round {number}: loop {rows / looped:.0f} images/s, "
            f"scan {rows / scanned:.0f} images/s, {ratios[-1]:.2f} times as fast"
        )
    print(f"median of {rounds} rounds: {median(ratios):.2f} times as fast")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
