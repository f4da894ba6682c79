"""Outliers of an audit: pictures are made to learn from, and every row is asked about."""

import time
from dataclasses import dataclass, field

import numpy as np

from labelclean.arrays import ENOUGH_ROWS, Ints
from labelclean.calibration.pattern import fit_pattern, start_matrix
from labelclean.data.strange import STRANGE, StrangePictures, kind_of
from labelclean.evidence.features import FeatureEvidence, PreparedFeatures
from labelclean.evidence.folds import some_rows
from labelclean.evidence.outliers import (
    OutlierEvidence,
    PlantedOutliers,
    RowFeatures,
    find_outliers,
)
from labelclean.options import OpenProgress
from labelclean.training.cache import FeatureCache
from labelclean.training.features import find_features, scaled_features
from labelclean.training.fit import Fitter

LEAST_ROWS = 1000
"""Of fewer rows there is too little to learn from: on 300 nothing found was above one half."""
NOTHING_FROZEN = (
    "Nothing is said about outliers: the network was trained on the rows themselves, and no frozen "
    "one looked at them."
)
_SHARE, _MOST = 0.06, 512  # pictures made: a twentieth of the work or so
_PATTERN_CLASSES = 1000


@dataclass(frozen=True, slots=True)
class OutlierReport:
    """What became of the question which rows are outliers.

    Args:
        found: What is known; None: nothing.
        why_not: Why nothing is said, in a sentence; empty where something is.
        planted: Pictures that were made.
        seconds: What it took.
    """

    found: OutlierEvidence | None
    why_not: str = ""
    planted: int = 0
    seconds: float = 0.0

    def facts(self) -> dict[str, object]:
        """Give plain data for run.json."""
        known: dict[str, object] = {"planted": self.planted, "seconds": round(self.seconds, 2)}
        if self.found is not None:
            known["planted_auroc"] = round(self.found.auroc, 4)
            names = STRANGE if len(self.found.shares) == len(STRANGE) else ("found",)
            shares = zip(names, self.found.shares, strict=False)
            known["shares"] = {name: round(share, 4) for name, share in shares}
        return known


@dataclass(slots=True)
class OutlierSearch:
    """The two halves of the search: pictures are made by all processes, judged by the leading one.

    Args:
        planted: What was made; None: nothing could be.
        why_not: Why nothing could be.
        seconds: What it took so far.
    """

    planted: PlantedOutliers | None = None
    why_not: str = ""
    seconds: float = field(default=0.0)

    def judge(
        self, prepared: PreparedFeatures, evidence: FeatureEvidence, label: Ints
    ) -> OutlierReport:
        """Ask about every row whose features were prepared; label (N,) the given ones."""
        if self.planted is None:
            return OutlierReport(None, self.why_not)
        began = time.perf_counter()
        probs, fusion = evidence.fused, evidence.fusion
        rows = some_rows(len(label), ENOUGH_ROWS)
        share = fusion.share if probs.shape[1] <= _PATTERN_CLASSES else 1.0
        table = fit_pattern(label[rows], probs[rows], share, start_matrix(probs.shape[1]))
        features = RowFeatures(
            prepared.features, prepared.components, prepared.near, prepared.similar, fusion.fold
        )
        found = find_outliers(features, self.planted, probs, label, table, prepared.verified)
        why = ""
        if found.probability is None:
            why = (
                "Nothing is said about outliers: pictures that were made to show no class are "
                f"hardly told from the data set's own (AUROC {found.auroc:.2f})."
            )
        seconds = self.seconds + time.perf_counter() - began
        return OutlierReport(found, why, len(self.planted.kind), seconds)


def make_outliers(frozen: Fitter, progress: OpenProgress) -> OutlierSearch:
    """Make pictures that show none of the classes, and compute their features.

    Args:
        frozen: Has the features of the samples ready.
        progress: Opens a progress bar by name.
    """
    samples, count = frozen.samples, frozen.samples.trained
    if isinstance(samples.source, np.ndarray):
        return OutlierSearch(
            why_not="Nothing is said about outliers: without pictures none can be made to learn "
            "from."
        )
    if count < LEAST_ROWS:
        return OutlierSearch(
            why_not=f"Nothing is said about outliers: {count} rows are too few to learn from; "
            f"{LEAST_ROWS:,} are enough."
        )
    began = time.perf_counter()
    made_of = _pairs(samples.label[:count], frozen.runtime.seed)
    made = StrangePictures(
        samples.source, samples.rows[made_of], samples.digest[made_of], frozen.runtime.seed
    )
    if frozen.extractor is None or frozen.scaling is None:
        return OutlierSearch(why_not=NOTHING_FROZEN)
    extractor, limit = frozen.extractor, frozen.training.cache_gigabytes * 2**30
    store = FeatureCache(frozen.cache, extractor.key, extractor.embedder.width, limit)
    every, content = np.arange(len(made)), made.content()
    with progress("outliers") as on_progress:
        table = find_features(extractor, made, every, content, store, on_progress)
    features = scaled_features(table, frozen.scaling, None)
    kind = np.array([STRANGE.index(kind_of(at)) for at in range(len(made))])
    planted = PlantedOutliers(features, kind, made_of)
    return OutlierSearch(planted, seconds=time.perf_counter() - began)


def _pairs(label: Ints, seed: int) -> Ints:
    """(P, 2) samples of two labels each, drawn from all of (N,)."""
    count = min(round(_SHARE * len(label)), _MOST)
    rng = np.random.default_rng([abs(seed), int(seed < 0), 7])
    one = rng.integers(0, len(label), count)
    pairs = np.empty((count, 2), np.int64)
    for at, first in enumerate(one.tolist()):
        others = np.flatnonzero(label != label[first])
        pairs[at] = first, others[rng.integers(len(others))]
    return pairs
