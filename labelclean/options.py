"""Where a run computes, where it keeps things, and how it says how far it is."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

OnProgress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""
OpenProgress = Callable[[str], AbstractContextManager[OnProgress]]
"""Opens a progress bar by name and gives what moves it."""
PathText = str | os.PathLike[str]
"""A path as people give it."""
Log = Callable[[str], None]
"""Takes a message for the user."""


def silent(_done: int, _total: int) -> None:
    """Show no progress."""


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
    """

    device: str = "auto"
    threads: int | None = None
    cache: Path | None = None
    no_cache: bool = False
    engine: str | None = None
    wait: bool = False
    progress: OpenProgress = no_progress
    log: Log = no_log

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

    with tqdm(desc=title, disable=None if shown is None else not shown, leave=False) as bar:

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)
            if done == total:
                bar.refresh()

        yield advance
