"""Evidence: everything the judge needs about the audited rows, stored as it is with a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from labelclean.calibration.fused import Fusion
from labelclean.correction.decisions import Decisions
from labelclean.evidence.duplicates import DuplicateGroups, no_duplicates


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was observed about n audited rows: all that a judgement needs.

    Args:
        row: (n,) int64 rows of the manifest.
        probs: (n, C) float32: pool of posteriors of the true class where there is a fusion, else
            a model's probabilities of the given label.
        fusion: How several sources became one; None: there is one model.
        in_sample: The model was trained on the very rows and labels it speaks about.
        signals: Column name of issues.parquet to (n,) values.
        unreadable: Row to the reason why its picture cannot be read.
        quality: Signal name to AUROC and average precision on planted flips.
        duplicates: Rows that show the same picture, held-out ones too.
        faults: Row to what is wrong with its picture as a picture, such as "dark, blurred".
        unknown: What could not be found beside wrong labels, and why, in sentences.
        people: What people decided before.
        left_out: (k,) rows that could be audited and were not, because people want them out.
    """

    row: NDArray[np.int64]
    probs: NDArray[np.float32]
    fusion: Fusion | None
    signals: Mapping[str, NDArray[np.float64]]
    unreadable: Mapping[int, str]
    in_sample: bool = False
    quality: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    duplicates: DuplicateGroups = field(default_factory=no_duplicates)
    faults: Mapping[int, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    people: Decisions = field(default_factory=dict)
    left_out: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
