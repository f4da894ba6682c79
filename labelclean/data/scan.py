"""Look at every picture once: which can be read, how large they are, which are the same."""

import math
import signal
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labelclean.data.images import ImageError
from labelclean.data.looks import LIGHT, THUMBNAIL_SIDE
from labelclean.data.sources import ImageSource, array_digest
from labelclean.errors import LabelCleanError
from labelclean.options import OnProgress, usable_cores

if TYPE_CHECKING:
    from joblib.externals.loky import ProcessPoolExecutor

"""Called with the number of rows done and the number of all rows."""

DIGEST_BYTES = 32
_FIRST_ROWS = 32
_MAX_ROWS = 2048
# Long enough to hide what it costs to hand a part over, short enough for a bar that moves.
_PART_SECONDS = 0.05
# A new process needs about a third of a second before it decodes its first picture.
_WORTH_A_PROCESS = 1.0


@dataclass(frozen=True, slots=True)
class Scan:
    """What a look at every picture found; N rows.

    Args:
        readable: (N,) bool.
        reason: (N,) text, why a row is not readable; empty where it is.
        digest: (N, 32) uint8, SHA-256 of the content as stored; zero where not readable.
        width: (N,) int32, pixels of the upright picture; 0 where not readable.
        height: (N,) int32, as `width`.
        thumbnail: (N, 16, 16) uint8, grey, upright; None where the samples are no pictures.
        light: (N, 4) float32, how light and sharp, see `looks.LIGHT`; None as above.
    """

    readable: np.ndarray
    reason: np.ndarray
    digest: np.ndarray
    width: np.ndarray
    height: np.ndarray
    thumbnail: np.ndarray | None = None
    light: np.ndarray | None = None

    def duplicates(self) -> list[np.ndarray]:
        """Group readable rows of identical content: groups of two or more, in order of rows."""
        rows = np.flatnonzero(self.readable)
        keys = np.ascontiguousarray(self.digest[rows]).view(f"S{DIGEST_BYTES}").ravel()
        # A stable sort keeps rows in order within a group; "S" ignores trailing zero bytes, which
        # cannot make digests of one length equal that are not.
        order = np.argsort(keys, kind="stable")
        edges = np.flatnonzero(keys[order][1:] != keys[order][:-1]) + 1
        groups = [rows[group] for group in np.split(order, edges) if len(group) > 1]
        return sorted(groups, key=lambda group: int(group[0]))


@dataclass(frozen=True, slots=True)
class _Part:
    """Findings for consecutive rows, packed: a few buffers travel faster than many small values."""

    start: int
    size: np.ndarray
    digest: bytes
    thumbnail: np.ndarray
    light: np.ndarray
    reasons: dict[int, str]


def scan_images(
    source: ImageSource, *, workers: int | None = None, progress: OnProgress | None = None
) -> Scan:
    """Decode every picture once; every row that fails is kept, with its reason.

    Args:
        source: The pictures.
        workers: Processes that decode at the same time, this one included; 0 and 1: only this one;
            None: one per core, if the work left after a first look is worth starting them.
        progress: Told how many rows are done.

    Returns:
        The findings, the same for any number of workers.

    Raises:
        LabelCleanError: A worker process died.
    """
    rows = len(source)
    findings = _empty(rows, pictures=True)
    done = 0
    for part in _parts(source, workers):
        done += _store(findings, part)
        if progress is not None:
            progress(done, rows)
    return findings


def scan_features(features: np.ndarray) -> Scan:
    """Look at feature vectors as at pictures: (N, D); a row that is not finite is not readable."""
    findings = _empty(len(features))
    for start in range(0, len(features), _MAX_ROWS):
        block = slice(start, start + _MAX_ROWS)
        findings.readable[block] = np.isfinite(features[block]).all(axis=1)
    for row, vector in enumerate(features):
        if findings.readable[row]:
            findings.digest[row] = np.frombuffer(array_digest(vector), np.uint8)
        else:
            findings.reason[row] = "a feature is NaN or infinite"
    return findings


def _empty(rows: int, *, pictures: bool = False) -> Scan:
    side = THUMBNAIL_SIDE
    return Scan(
        readable=np.zeros(rows, bool),
        reason=np.full(rows, "", dtype=object),
        digest=np.zeros((rows, DIGEST_BYTES), np.uint8),
        width=np.zeros(rows, np.int32),
        height=np.zeros(rows, np.int32),
        thumbnail=np.zeros((rows, side, side), np.uint8) if pictures else None,
        light=np.zeros((rows, len(LIGHT)), np.float32) if pictures else None,
    )


def _store(findings: Scan, part: _Part) -> int:
    rows = slice(part.start, part.start + len(part.size))
    findings.width[rows], findings.height[rows] = part.size.T
    findings.digest[rows] = np.frombuffer(part.digest, np.uint8).reshape(-1, DIGEST_BYTES)
    findings.readable[rows] = True
    if findings.thumbnail is not None and findings.light is not None:
        findings.thumbnail[rows], findings.light[rows] = part.thumbnail, part.light
    for offset, reason in part.reasons.items():
        findings.readable[part.start + offset] = False
        findings.reason[part.start + offset] = reason
    return len(part.size)


def _look(source: ImageSource, start: int) -> _Part:
    """Look at every row of a source that begins at row `start` of the whole."""
    count = len(source)
    sizes, digests, reasons = np.zeros((count, 2), np.int32), [], {}
    thumbnail = np.zeros((count, THUMBNAIL_SIDE, THUMBNAIL_SIDE), np.uint8)
    light = np.zeros((count, len(LIGHT)), np.float32)
    for row in range(count):
        try:
            width, height, digest, seen = source.inspect(row)
        except ImageError as error:
            digest = bytes(DIGEST_BYTES)
            reasons[row] = error.reason
        else:
            sizes[row] = width, height
            thumbnail[row], light[row] = seen.thumbnail, seen.light
        digests.append(digest)
    return _Part(start, sizes, b"".join(digests), thumbnail, light, reasons)


class _Pace:
    """Cuts parts that each take about the same time, as pictures may be small or large."""

    def __init__(self, rows: int, workers: int) -> None:
        self.rows, self.workers = rows, workers
        self.position = 0
        self._size = _FIRST_ROWS
        self._row_seconds = 0.0

    @property
    def left(self) -> int:
        return self.rows - self.position

    @property
    def seconds_left(self) -> float:
        return self.left * self._row_seconds

    def cut(self) -> tuple[int, int]:
        """Give the bounds of the next part; the last ones shrink so that all end together."""
        fair = math.ceil(self.left / (4 * self.workers))
        start = self.position
        self.position += max(1, min(self._size, fair, self.left))
        return start, self.position

    def learn(self, rows: int, seconds: float) -> None:
        self._row_seconds = max(seconds / rows, 1e-7)
        self._size = min(_MAX_ROWS, max(1, int(_PART_SECONDS / self._row_seconds)))


def _next_part(source: ImageSource, pace: _Pace) -> _Part:
    """Look at the next part in this process, and learn how long it takes."""
    start, stop = pace.cut()
    began = time.perf_counter()
    part = _look(source.part(start, stop), start)
    pace.learn(stop - start, time.perf_counter() - began)
    return part


def _parts(source: ImageSource, workers: int | None) -> Iterator[_Part]:
    pace = _Pace(len(source), max(1, usable_cores() if workers is None else workers))
    if workers is None:
        # The first part pays for Pillow's plugins; the second shows what a row costs.
        for _ in range(min(2, pace.left)):
            yield _next_part(source, pace)
    together = pace.workers > 1 and (workers or pace.seconds_left > _WORTH_A_PROCESS)
    yield from _together(source, pace) if together else _alone(source, pace)


def _alone(source: ImageSource, pace: _Pace) -> Iterator[_Part]:
    while pace.left:
        yield _next_part(source, pace)


def _together(source: ImageSource, pace: _Pace) -> Iterator[_Part]:
    """Look with helpers; this process works too, because it would otherwise only wait for them."""
    helpers = pace.workers - 1
    pending: set[Future[_Part]] = set()
    with _helpers(helpers) as pool:
        while pace.left or pending:
            while pace.left and len(pending) < 2 * helpers:
                start, stop = pace.cut()
                pending.add(pool.submit(_look, source.part(start, stop), start))
            if pace.left:
                yield _next_part(source, pace)
            else:
                wait(pending, return_when=FIRST_COMPLETED)
            finished = {future for future in pending if future.done()}
            pending -= finished
            yield from (future.result() for future in finished)


@contextmanager
def _helpers(count: int) -> "Iterator[ProcessPoolExecutor]":
    # Spawns anew on every system, and unlike the standard pool does not run the caller's script
    # again, so a script without a main guard works. Late: a look at few pictures needs none.
    from joblib.externals.loky import ProcessPoolExecutor  # noqa: PLC0415

    pool = ProcessPoolExecutor(count, initializer=_prepare_helper)
    try:
        yield pool
    except BrokenProcessPool as error:
        raise LabelCleanError(
            "a process that reads images ended before its work was done, killed or out of memory. "
            "Try again with --workers 1, which reads them in this process."
        ) from error
    finally:
        pool.shutdown(wait=True, kill_workers=True)


def _prepare_helper() -> None:
    """Keep a helper silent: what it has to say is in the findings it sends."""
    # Ctrl-C is left to the main process, which ends the helpers without their tracebacks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.filterwarnings("ignore", module=r"PIL\.")
