"""Which rows a model is measured on, and the papers' measures; never rows it was trained on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.data.scan import Scan
from labelclean.data.settings import DataSettings
from labelclean.errors import DataError
from labelclean.outputs.truth import UNKNOWN
from labelclean.runs.relabelled import Relabelled
from labelclean.workflows.duplicates import duplicates_of

_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class EvaluationSplit:
    """What models are measured on.

    Args:
        rows: (N,) True for the rows that are never trained on and measured.
        target: (N,) the right answers there.
        on: `test split` or `held-out slice`.
        labels: `true` or `given`.
        repeated: Rows of the split that are left out because training has the same picture.
    """

    rows: NDArray[np.bool_]
    target: NDArray[np.int64]
    on: str
    labels: str
    repeated: int

    def warnings(self) -> list[str]:
        """Say what a reader of the numbers must know."""
        count = int(self.rows.sum())
        said = []
        if self.on != "test split":
            said.append(
                f"No readable row has split 'test', so accuracy was measured on {count} rows held "
                "out from the audited ones; the model was trained without them."
            )
        if self.labels == "given":
            said.append(
                "The labels of these rows are the given ones and may be wrong themselves, so the "
                "accuracy is that of agreeing with them."
            )
        if self.repeated:
            said.append(
                f"{self.repeated} rows were not measured: the same pictures, or near copies of "
                "them, are among those trained on."
            )
        return said


def choose_evaluation_split(
    data: Relabelled, scan: Scan, seed: int, settings: DataSettings | None = None
) -> EvaluationSplit:
    """Choose the rows to measure: the split `test`, else a tenth of the audited rows.

    Args:
        data: The rows.
        scan: Which can be read, and which have the same content.
        seed: Seed of the slice.
        settings: Limits of what is read to find near copies; None: only the same content counts.

    Raises:
        DataError: No row is left to measure.
    """
    on, rows = "test split", _test_rows(data) & scan.readable
    if not rows.any():
        on, rows = "held-out slice", a_tenth(data.given, data.audited & scan.readable, seed)
    keys = np.ascontiguousarray(scan.digest).view(f"S{scan.digest.shape[1]}").ravel()
    seen = data.audited & scan.readable & ~rows
    repeated = rows & np.isin(keys, keys[seen])
    if settings is not None:
        group = duplicates_of(data.manifest, scan, settings).of_rows(len(rows))
        repeated |= rows & (group >= 0) & np.isin(group, group[seen])
    rows = rows & ~repeated
    target, labels = data.given.copy(), "given"
    decided = data.manifest.verified
    target[decided] = data.manifest.label[decided]
    if data.truth is not None and (rows & (data.truth != UNKNOWN)).any():
        rows = rows & (data.truth != UNKNOWN)
        target, labels = data.truth, "true"
    if not rows.any():
        raise DataError(
            "no row is left to measure accuracy on: every candidate has the same content as a row "
            "that is trained on. Mark other rows with split 'test'."
        )
    return EvaluationSplit(rows, target, on, labels, int(repeated.sum()))


def _test_rows(data: Relabelled) -> NDArray[np.bool_]:
    split = data.manifest.split
    if split is None:
        return np.zeros(len(data.given), bool)
    return np.asarray(split.astype(str) == "test") & ~data.audited


def a_tenth(
    label: NDArray[np.int64], candidates: NDArray[np.bool_], seed: int
) -> NDArray[np.bool_]:
    """Take a tenth of every class, at least one row of classes that have two."""
    generator = np.random.default_rng([abs(seed), int(seed < 0), 5])
    taken = np.zeros(len(label), bool)
    for code in np.unique(label[candidates]):
        members = generator.permutation(np.flatnonzero(candidates & (label == code)))
        size = max(round(_SHARE * len(members)), int(len(members) > 1))
        taken[members[:size]] = True
    return taken


def evaluation_accuracy(probs: NDArray[np.float32], evaluation: EvaluationSplit) -> float:
    """Give the share of right answers of (N, C) probabilities on the evaluation split."""
    return _share(probs.argmax(axis=1) == evaluation.target, evaluation.rows) or 0.0


def measures(
    probs: NDArray[np.float32], evaluation: EvaluationSplit, data: Relabelled
) -> dict[str, float | None]:
    """Give the papers' measures of a model.

    `noisy_subset` is the share of rows with a wrong given label whose answer is that wrong label:
    lower is better. `clean_subset` is the share of right answers on rows with a right given label.
    `hybrid` is the accuracy over the measured rows and all audited ones, with their true labels
    (Wang et al., IMAE, table 6). They need the truth and are absent without it.

    Args:
        probs: (N, C); NaN where not readable.
        evaluation: What was held out.
        data: The rows.
    """
    found: dict[str, float | None] = {"accuracy": evaluation_accuracy(probs, evaluation)}
    if data.truth is None:
        return found
    answer = np.where(np.isnan(probs).any(axis=1), -9, np.nan_to_num(probs).argmax(axis=1))
    known = data.audited & (data.truth != UNKNOWN) & (answer >= 0)
    seen = known & ~evaluation.rows
    wrong = data.truth != data.given
    return {
        **found,
        "noisy_subset": _share(answer == data.given, seen & wrong),
        "noisy_subset_true": _share(answer == data.truth, seen & wrong),
        "clean_subset": _share(answer == data.given, seen & ~wrong),
        "hybrid": _share(
            answer == data.truth, known | (evaluation.rows & (evaluation.labels == "true"))
        ),
    }


def _share(right: NDArray[np.bool_], rows: NDArray[np.bool_]) -> float | None:
    return round(float(right[rows].mean()), 6) if rows.any() else None
