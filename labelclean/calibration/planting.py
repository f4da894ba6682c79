"""Planted flips: rows that get a known wrong label, so that the evidence can be tested on them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.errors import ConfigError, DataError

FLIP_KINDS = ("uniform", "confusion", "pattern")


@dataclass(frozen=True, slots=True)
class PlantedFlips:
    """Labels with known errors; the given labels themselves are never changed.

    Args:
        label: (N,) int64, a copy of the given labels with the planted ones in place.
        rows: (m,) int64, the planted rows, ascending.
    """

    label: NDArray[np.int64]
    rows: NDArray[np.int64]

    @property
    def mask(self) -> NDArray[np.bool_]:
        """(N,) True for planted rows."""
        mask = np.zeros(len(self.label), dtype=bool)
        mask[self.rows] = True
        return mask


def plant_flips(
    labels: NDArray[np.int64],
    num_classes: int,
    share: float,
    rng: np.random.Generator,
    kind: str = "uniform",
    probs: NDArray[np.floating] | None = None,
) -> PlantedFlips:
    """Give a random share of the rows a label other than their given one.

    Args:
        labels: (N,) the given labels; not changed.
        num_classes: C.
        share: Share of rows to plant, above 0 and at most 0.5.
        rng: Where the draws come from.
        kind: "uniform" draws any other class, "confusion" draws what the model takes the row for,
            in proportion to its probabilities, "pattern" what labels like it are mistaken for,
            the more often they are.
        probs: (N, C) the model's probabilities, needed by "confusion"; (C, C) P(given | true),
            needed by "pattern".

    Raises:
        ConfigError: Share or kind are out of range, or probabilities are missing.
        DataError: There is nothing to flip to.
    """
    if not 0 < share <= 0.5:
        raise ConfigError(f"share of planted flips is {share}; it must be above 0, at most 0.5.")
    if kind not in FLIP_KINDS:
        raise ConfigError(
            f"unknown kind of planted flips {kind!r}. Known: {', '.join(FLIP_KINDS)}."
        )
    if num_classes < 2:
        raise DataError("planting needs at least two classes.")
    if kind != "uniform" and probs is None:
        raise ConfigError(f"planting kind {kind!r} needs probabilities.")
    count = max(1, round(share * len(labels)))
    chance = None
    if kind == "pattern" and probs is not None:
        # Labels that are mistaken more often are planted more often.
        chance = 1 - np.diagonal(probs)[labels].astype(np.float64) + 1e-6
        chance /= chance.sum()
    rows = np.sort(rng.choice(len(labels), min(count, len(labels)), replace=False, p=chance))
    given = labels[rows].astype(np.int64)
    if kind == "uniform" or probs is None:
        wrong = (given + rng.integers(1, num_classes, len(rows))) % num_classes
    else:
        weight = np.array(probs[given if kind == "pattern" else rows], dtype=np.float64) + 1e-6
        weight[np.arange(len(rows)), given] = 0.0
        steps = weight.cumsum(axis=1)
        draw = rng.random((len(rows), 1)) * steps[:, -1:]
        wrong = (draw >= steps).sum(axis=1)
    label = labels.astype(np.int64, copy=True)
    label[rows] = wrong
    return PlantedFlips(label, rows)


def fair_rows(planted: PlantedFlips, *posteriors: NDArray[np.floating]) -> NDArray[np.bool_]:
    """(N,) planted rows, and those whose label somebody believes: fair examples of right labels.

    Rows that every posterior (N, C) calls something else may be wrong as given. Where no others
    are left, all rows count.
    """
    believed = [probs.argmax(axis=1) == planted.label for probs in posteriors]
    fair: NDArray[np.bool_] = planted.mask | np.any(believed, axis=0)
    return fair if (fair & ~planted.mask).any() else np.ones(len(fair), bool)
