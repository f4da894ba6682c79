"""Open-set noise: pictures of no known class under a known label."""

import numpy as np

from labelclean.benchmark.injection import Injection, check_fraction, exact_count, measure_injection
from labelclean.errors import DataError


def openset(
    label: np.ndarray,
    num_classes: int,
    rate: float,
    rng: np.random.Generator,
    num_donors: int,
    open_fraction: float = 1.0,
) -> Injection:
    """Replace pictures by those of a second data set, and flip labels of the rest.

    Exactly int(rN) samples are chosen. The first int(r N open_fraction) of them get a picture of
    the second data set and keep their label; the others keep their picture and get a label drawn
    from all C classes, as in symmetric "any", so that a few of them stay clean.

    Paper: Sachdeva et al., EvidentialMix, WACV 2021. Ours: a donor picture is used twice only when
    there are fewer donors than places.

    Args:
        label: (N,) clean labels.
        num_classes: C.
        rate: r, open and closed together.
        rng: Where the draws come from.
        num_donors: Rows of the second data set.
        open_fraction: Share of the chosen samples whose picture is replaced.
    """
    check_fraction("open_fraction", open_fraction)
    if num_donors < 1:
        raise DataError("the second data set is empty; open-set noise takes its pictures from it.")
    chosen = rng.permutation(len(label))[: exact_count(rate, len(label))]
    count = exact_count(open_fraction, len(chosen))
    replaced, closed = chosen[:count], chosen[count:]
    donor = np.full(len(label), -1, dtype=np.int64)
    donor[replaced] = rng.choice(num_donors, count, replace=num_donors < count)
    noisy = label.copy()
    noisy[closed] = rng.integers(0, num_classes, len(closed))
    return measure_injection(label, noisy, num_classes, rate, donor)
