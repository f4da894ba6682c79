"""Progress of a fit on the error stream, for those who ask for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def epoch_bar(verbose: int, title: str = "train") -> Iterator[Callable[[int, int], None]]:
    """Open a bar if `verbose` is above 0; gives what is told how many steps are done."""
    with tqdm(desc=title, disable=verbose < 1, leave=False) as bar:

        def tell(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield tell
