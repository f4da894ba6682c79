"""Where a run computes, where it keeps things, and how it says how far it is."""

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

OnProgress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""
OpenProgress = Callable[[str], AbstractContextManager[OnProgress]]
"""Opens a progress bar by name and gives what moves it."""
IMPORT, TOTAL = "import", "total"
PathText = str | os.PathLike[str]
"""A path as people give it."""
Log = Callable[[str], None]
"""Takes a message for the user."""


def usable_cores() -> int:
    """Count the cores this process may use: by its affinity, and by the quota of its container."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = cores_allowed(Path("/sys/fs/cgroup"))
    return cores if quota >= cores else max(1, math.ceil(quota))


def cores_allowed(control: Path) -> float:
    """Give the cores that a Linux control group allows; infinity where it says nothing of them.

    Args:
        control: Where control groups of version 2, or the controllers of version 1, are mounted.
    """
    try:
        if (control / "cpu.max").is_file():
            quota, period = (control / "cpu.max").read_text().split()
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            quota, period = ((control / "cpu" / name).read_text() for name in names)
        return float(quota) / float(period) if float(quota) > 0 else math.inf
    except (OSError, ValueError):  # "max", or another system
        return math.inf


def peak_memory() -> int | None:
    """Give the most memory this process has held, in bytes; None where the system does not tell."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 (not there on Windows)

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Clock:
    """How long every phase of a run takes; no second is counted twice.

    A phase inside another one stops the outer one's clock. What lies outside of all phases is
    part of the total only.

    Args:
        began: When the run began, by `time.perf_counter`; what is over since then was imports.
            None: now.

    Attributes:
        memory: Phase to the most memory the process had held when it ended, in bytes.
        worked: Phase to the seconds that all cores together spent on it in this process.
    """

    def __init__(self, began: float | None = None) -> None:
        now = time.perf_counter()
        self._began = now if began is None else began
        self._since = now
        self._open: list[str] = []
        self._seconds: dict[str, float] = {}
        self._worked_since = time.process_time()
        self.memory: dict[str, int | None] = {}
        self.worked: dict[str, float] = {}
        if began is not None:
            self._seconds[IMPORT], self.worked[IMPORT] = now - began, self._worked_since

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count what happens inside as the phase of that name; one name may come several times."""
        self._count()
        self._open.append(name)
        try:
            yield
        finally:
            self._count()
            self._open.pop()
            self.memory[name] = peak_memory()

    def timed(self, progress: "OpenProgress") -> "OpenProgress":
        """Make every bar that is opened a phase of the bar's title."""

        @contextmanager
        def opened(title: str) -> "Iterator[OnProgress]":
            with self.phase(title), progress(title) as advance:
                yield advance

        return opened

    def timings(self) -> dict[str, float]:
        """Give the seconds of every phase so far in the order they began, and the total."""
        self._count()
        known = {name: round(seconds, 4) for name, seconds in self._seconds.items()}
        return known | {TOTAL: round(self._since - self._began, 4)}

    def _count(self) -> None:
        now, worked = time.perf_counter(), time.process_time()
        if self._open:
            name = self._open[-1]
            self._seconds[name] = self._seconds.get(name, 0.0) + now - self._since
            self.worked[name] = self.worked.get(name, 0.0) + worked - self._worked_since
        self._since, self._worked_since = now, worked


def silent(_done: int, _total: int) -> None:
    """Show no progress."""


def in_rows(advance: OnProgress, rows: int) -> OnProgress:
    """Tell of epochs to a bar that counts the rows which were seen."""
    return lambda done, total: advance(done * rows, total * rows)


def no_progress(_title: str) -> AbstractContextManager[OnProgress]:
    """Open no progress bar."""
    return nullcontext(silent)


def no_log(_text: str) -> None:
    """Drop a message."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Where a run computes and keeps things; nothing here changes its result.

    Args:
        device: `auto`, `cpu`, `cuda` or `mps`.
        threads: Threads for the arithmetic; None: one per core.
        cache: Folder of the feature cache; None: the usual place.
        no_cache: Neither read nor write the cache.
        engine: Who decodes and embeds in shards: `local`, `ray` or `workers`; None: nobody.
        wait: Where another process writes, wait for it to end instead of refusing.
        progress: Opens a progress bar by name.
        log: Takes a message for the user.
        clock: Counts the seconds of the phases; None: every audit has its own.
    """

    device: str = "auto"
    threads: int | None = None
    cache: Path | None = None
    no_cache: bool = False
    engine: str | None = None
    wait: bool = False
    progress: OpenProgress = no_progress
    log: Log = no_log
    clock: Clock | None = None

    @property
    def queue(self) -> Log | None:
        """Who is told for whom we wait; None: we do not."""
        return self.log if self.wait else None


def cache_folder(chosen: Path | None) -> Path:
    """Find the feature cache: as chosen, or where the environment says, or the usual place."""
    if chosen is not None:
        return chosen
    own, shared = os.environ.get("LABELCLEAN_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if own:
        return Path(own)
    return (Path(shared) if shared else Path.home() / ".cache") / "labelclean"


@contextmanager
def progress_bar(title: str, *, shown: bool | None) -> Iterator[OnProgress]:
    """Show a bar on the error stream while work goes on; give what moves it.

    Args:
        title: What is going on, for example "reading images".
        shown: Whether anything is shown; None: only where the error stream is a terminal.
    """
    from tqdm import tqdm  # noqa: PLC0415 (commands load it late: --help must stay fast)

    hidden = None if shown is None else not shown
    with tqdm(desc=title, disable=hidden, leave=False, unit=" rows") as bar:

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)
            if done == total:
                bar.refresh()

        yield advance
