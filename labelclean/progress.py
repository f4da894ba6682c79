"""The one progress bar, on the error stream."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(title: str, *, shown: bool | None) -> Iterator[Callable[[int, int], None]]:
    """Show a bar while work goes on; give what the work must call with (done, total).

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
