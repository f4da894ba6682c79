"""Learn from planted flips: how good each signal is on this very data, and how to weigh them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from labelclean.calibration.blend import with_neighbours
from labelclean.calibration.judgement import Judgement, judge
from labelclean.calibration.planting import FLIP_KINDS, PlantedFlips, plant_flips
from labelclean.errors import DataError
from labelclean.evidence import scorers
from labelclean.evidence.ranking import fuse, unit_ranks
from labelclean.records.records import Records

_SHARE = 0.1
INFORMATIVE = 0.55  # AUROC a signal must reach on planted rows to get a weight
RIDGE = 0.1
RECALL = 0.8

Fit = Callable[[NDArray[np.int64]], Records]


@dataclass(frozen=True, slots=True)
class FlipReport:
    """What planting taught about one head and its signals.

    Args:
        records: Evidence on the given labels; nothing was planted in them.
        judgement: The judgement of its held-out probabilities, joined by the neighbours where
            there is an embedding: the ranking to use. It beat the fusion wherever flips follow the
            classes, which planted ones do not, and was level with it elsewhere.
        auroc: Signal name to AUROC on planted rows, averaged over the kinds of flips.
        precision: Signal name to average precision there.
        weights: Signal name to its weight in the fusion; sums to 1.
        fused: (N,) the fused ranking on the given labels, 0 to 1: a second opinion.
        fused_p_error: (N,) probability of an error along the fused ranking.
        fused_precision: Average precision of the fusion on planted rows.
        rate_by_flips: Kind of flips to the share of rows at least as suspect as the planted ones.
    """

    records: Records
    judgement: Judgement
    auroc: dict[str, float]
    precision: dict[str, float]
    weights: dict[str, float]
    fused: NDArray[np.float64]
    fused_p_error: NDArray[np.float64]
    fused_precision: float
    rate_by_flips: dict[str, float]


def calibrate_with_flips(
    fit: Fit,
    labels: NDArray[np.int64],
    num_classes: int,
    rng: np.random.Generator,
    share: float = _SHARE,
    verified: NDArray[np.bool_] | None = None,
) -> FlipReport:
    """Train once on the given labels and once per kind of planted flips, then weigh the signals.

    Everything that is reported about rows comes from the first training, on the given labels; the
    planted ones serve only to learn weights. Uniform flips are easier and confusion-like flips
    harder to see than people's errors, so both are planted and count the same.

    Args:
        fit: Trains a cheap head on labels (N,) and gives its Records.
        labels: (N,) the given labels; never changed.
        num_classes: C.
        rng: Where the draws come from.
        share: Share of rows to plant.
        verified: (N,) rows whose label is known to be right.

    Raises:
        DataError: The head's records do not belong to the labels.
    """
    base = fit(labels.copy())
    _check(base, labels)
    names = scorers.available(base)
    rounds = []
    for kind in FLIP_KINDS:
        planted = plant_flips(labels, num_classes, share, rng, kind, base.held_out_probs)
        records = fit(planted.label.copy())
        _check(records, planted.label)
        rounds.append((planted, _signals(records, names)))
    quality = [_measure(planted, signals) for planted, signals in rounds]
    auroc = {name: float(np.mean([q[name][0] for q in quality])) for name in names}
    precision = {name: float(np.mean([q[name][1] for q in quality])) for name in names}
    weights = _weigh(rounds, auroc)
    fused = fuse(_signals(base, names), weights)
    judgement = _judge(base, verified)
    trials = [fuse(signals, weights) for _, signals in rounds]
    return FlipReport(
        base,
        judgement,
        auroc,
        precision,
        weights,
        fused,
        along_ranking(judgement.p_error, fused, verified),
        float(np.mean([_precision(p.mask, s) for (p, _), s in zip(rounds, trials, strict=True)])),
        {p.kind: _beyond(p.mask, s) for (p, _), s in zip(rounds, trials, strict=True)},
    )


def choose_head(reports: Mapping[str, FlipReport]) -> str:
    """Name the head whose fused ranking finds planted flips best; ties go to the first."""
    if not reports:
        raise DataError("there is no head to choose from.")
    return max(reports, key=lambda name: reports[name].fused_precision)


def along_ranking(
    p_error: NDArray[np.floating],
    suspicion: NDArray[np.float64],
    verified: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Carry calibrated probabilities over to a better ranking; the mean, the noise rate, stays.

    Isotonic regression of p_error on the fused suspicion: rows of similar suspicion share their
    mean probability, and more suspicion never means less.
    """
    free = np.isfinite(p_error) & np.isfinite(suspicion)
    if verified is not None:
        free &= ~verified
    answer = p_error.astype(np.float64)
    if free.any():
        curve = IsotonicRegression(y_min=0.0, y_max=1.0)
        answer[free] = curve.fit_transform(suspicion[free], answer[free])
    return answer


def _judge(records: Records, verified: NDArray[np.bool_] | None) -> Judgement:
    probs = records.held_out_probs
    if records.embedding is not None:
        probs, _, _ = with_neighbours(records.label, probs, records.embedding)
    return judge(records.label, probs, verified=verified)


def _check(records: Records, labels: NDArray[np.int64]) -> None:
    if not np.array_equal(records.label, labels):
        raise DataError("fit gave records of other labels than it was called with.")


def _signals(records: Records, names: list[str]) -> dict[str, NDArray[Any]]:
    return {name: scorers.SCORERS[name](records) for name in names}


def _measure(
    planted: PlantedFlips, signals: dict[str, NDArray[Any]]
) -> dict[str, tuple[float, float]]:
    mask = planted.mask
    found = {}
    for name, signal in signals.items():
        seen = np.isfinite(signal)
        if mask[seen].any() and not mask[seen].all():
            area = float(roc_auc_score(mask[seen], signal[seen]))
            found[name] = (area, _precision(mask, signal))
        else:
            found[name] = (0.5, float(mask.mean()))
    return found


def _precision(mask: NDArray[np.bool_], signal: NDArray[Any]) -> float:
    seen = np.isfinite(signal)
    return float(average_precision_score(mask[seen], signal[seen]))


def _weigh(
    rounds: list[tuple[PlantedFlips, dict[str, NDArray[Any]]]], auroc: dict[str, float]
) -> dict[str, float]:
    """Regularised logistic regression of 'planted' on the signals' ranks; never negative.

    A signal that planting shows to be uninformative gets no weight, nor does one that only repeats
    others and comes out negative. If nothing is left, the best signal stands alone.
    """
    used = [name for name, area in auroc.items() if area > INFORMATIVE]
    best = max(auroc, key=lambda name: auroc[name])
    if len(used) < 2:
        return {best: 1.0}
    tables, planted = [], []
    for plan, signals in rounds:
        ranks = np.stack([np.nan_to_num(unit_ranks(signals[n]), nan=0.5) for n in used], axis=1)
        tables.append(np.log(ranks / (1 - ranks)))
        planted.append(plan.mask)
    model = LogisticRegression(C=RIDGE, max_iter=500, class_weight="balanced")
    model.fit(np.concatenate(tables), np.concatenate(planted))
    weight = np.maximum(model.coef_.ravel(), 0.0)
    if weight.sum() <= 0:
        return {best: 1.0}
    return {n: float(w) for n, w in zip(used, weight / weight.sum(), strict=True) if w > 0}


def _beyond(mask: NDArray[np.bool_], suspicion: NDArray[np.float64]) -> float:
    """Share of unplanted rows beyond the planted rows' 20 % quantile, divided by 0.8."""
    edge = float(np.quantile(suspicion[mask], 1 - RECALL))
    return min(1.0, float(np.mean(suspicion[~mask] >= edge)) / RECALL)
