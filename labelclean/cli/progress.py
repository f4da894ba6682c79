"""The one progress bar: on stderr, and only where a person watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(title: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a bar while work goes on; give what the work must call with (done, total).

    Args:
        title: What is going on, for example "reading images".
        quiet: Show nothing. Nothing is shown either where stderr is no terminal.
    """
    from tqdm import tqdm

    with tqdm(desc=title, disable=True if quiet else None, leave=False) as bar:

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)
            if done == total:
                bar.refresh()

        yield advance
