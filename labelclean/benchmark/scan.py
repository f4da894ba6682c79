"""The pre-scan beside a plain loop that does the same work, in the same run."""

import time
from dataclasses import dataclass

from labelclean.data.scan import scan_images
from labelclean.data.sources import ImageSource


@dataclass(frozen=True, slots=True)
class ScanRound:
    """One comparison; images per second."""

    loop: float
    scan: float

    @property
    def ratio(self) -> float:
        """How many times as fast the scan was."""
        return self.scan / self.loop


def compare_scan(source: ImageSource, workers: int | None, rounds: int) -> list[ScanRound]:
    """Open, decode, orient and digest every image by a loop, then by the scan, several times.

    Each round does both, so that a busy machine disturbs both.
    """
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        for row in range(len(source)):
            source.inspect(row)
        looped = time.perf_counter() - began
        scan_images(source, workers=workers)
        scanned = time.perf_counter() - began - looped
        found.append(ScanRound(len(source) / looped, len(source) / scanned))
    return found
