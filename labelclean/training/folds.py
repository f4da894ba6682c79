"""Cross-fitting: networks that each leave rows out speak about rows whose labels they never saw."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from labelclean.losses import RobustLoss
from labelclean.options import OpenProgress, no_progress
from labelclean.training.fit import Fitter
from labelclean.training.task import Subset


@dataclass(frozen=True, slots=True)
class CrossFitted:
    """What networks say about n rows that they were not trained on.

    Args:
        probs: (n, C) posteriors averaged over the later epochs, by the network that left a row out.
        fold: (n,) which network that was, 0 ... K-1.
    """

    probs: NDArray[np.float32]
    fold: NDArray[np.int64]


def cross_fit(
    fitter: Fitter,
    fold: NDArray[np.int64],
    new_loss: Callable[[], RobustLoss],
    progress: OpenProgress = no_progress,
) -> CrossFitted | None:
    """Train a network for every fold on the rows of the others, all with the fitter's inputs.

    Args:
        fitter: Trains on all n rows.
        fold: (n,) 0 ... K-1; every fold leaves some rows to train on.
        new_loss: Builds a loss, which remembers nothing of another network's rows.
        progress: Opens a progress bar by name.

    Returns:
        What they say, or None in a process that does not lead.
    """
    samples, n = fitter.samples, fitter.samples.trained
    others, count = np.arange(n, len(samples.rows)), int(fold.max()) + 1
    probs = np.empty((n, samples.num_classes), np.float32)
    for k in range(count):
        kept, out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        order = np.concatenate([kept, out, others])
        part = replace(
            samples,
            rows=samples.rows[order],
            digest=samples.digest[order],
            trained=len(kept),
            label=samples.label[order],
            weight=samples.weight[kept],
            sample_id=samples.sample_id[order],
            verified=None if samples.verified is None else samples.verified[order],
        )
        again = fitter.again(part, f"fold-{k + 1}", partial(Subset, rows=order))
        with progress(f"fold {k + 1} of {count}") as on_progress:
            said = again.fit_apart(new_loss(), len(out), on_progress)
        if said is not None:
            probs[out] = said
    return CrossFitted(probs, fold) if fitter.runtime.leads else None
