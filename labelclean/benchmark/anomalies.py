"""How well outliers, duplicates and leaks are found where they were planted, beside others."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from labelclean.arrays import Bools, Floats, Ints
from labelclean.benchmark.anomaly_planting import COPIES, PlantedAnomalies, plant_anomalies
from labelclean.benchmark.anomaly_rivals import (
    cleanvision_groups,
    datalab_groups,
    datalab_outliers,
)
from labelclean.benchmark.metrics import auroc, average_precision, calibration_error
from labelclean.correction.judging import judge_evidence
from labelclean.data.manifest import Manifest
from labelclean.data.opening import open_manifest
from labelclean.errors import DataError
from labelclean.evidence.features import ClassPosteriors, PreparedFeatures
from labelclean.evidence.neighbours import nearest_rows
from labelclean.options import RunOptions
from labelclean.recipe import Recipe
from labelclean.training.runtime import Runtime
from labelclean.workflows.collect import collect_evidence, leak_facts
from labelclean.workflows.observe import Observation, observe

_NEAR = (1, 10, 50)


@dataclass(frozen=True, slots=True)
class AnomalyScore:
    """How good one method was at one finding.

    Args:
        finding: `outliers`, `none` (rows whose true label says so), `duplicates`, `leaks` or
            `time`.
        method: Who found it.
        numbers: Name of a measure to its value.
    """

    finding: str
    method: str
    numbers: Mapping[str, float | int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnomalyCase:
    """What is planted.

    Args:
        rate: Share of rows with a foreign picture.
        copies: Rows added as copies.
        leaks: Rows added in a split of their own.
        rival: Whether others are asked, too.
    """

    rate: float = 0.05
    copies: int = 300
    leaks: int = 100
    rival: bool = False


def score_anomalies(
    manifest: Manifest,
    others: Sequence[Manifest],
    lost: Bools,
    case: AnomalyCase,
    folder: Path,
    recipe: Recipe,
    runtime: Runtime,
    options: RunOptions,
) -> list[AnomalyScore]:
    """Plant anomalies in a copy of a data set, audit it, and score what is found.

    Args:
        manifest: Samples with pictures.
        others: Where foreign pictures come from.
        lost: (N,) rows that show none of the classes already; they are no example of either.
        case: What to plant.
        folder: An empty folder.
        recipe: Every setting; those of reading are not used for what was planted.
        runtime: Where to compute.
        options: Where features are kept.

    Raises:
        DataError: Nothing can be planted, or there is no basis for outliers.
    """
    planted = plant_anomalies(
        manifest, others, folder,
        rate=case.rate, copies=case.copies, leaks=case.leaks, seed=abs(runtime.seed),
    )  # fmt: skip
    plain = Recipe(loss=recipe.loss, model=recipe.model, training=recipe.training)
    table = open_manifest(str(planted.table), plain.data)
    heard: list[tuple[PreparedFeatures, ClassPosteriors]] = []
    began = time.perf_counter()
    seen = observe(table, plain, runtime, options=options, hear=lambda *said: heard.append(said))
    found = judge_evidence(table, collect_evidence(seen), {})
    took = time.perf_counter() - began
    if not heard:
        raise DataError("--mode scratch has no frozen features; nothing is said about outliers.")
    scores = _outliers(planted, lost, seen, heard[0], case)
    scores += duplicate_score(planted, "labelclean", seen.duplicates.members(), case)
    if case.rival and case.copies:
        groups, seconds = cleanvision_groups(planted.table.parent / "images")
        scores += duplicate_score(planted, "cleanvision", groups, case, seconds)
        groups, seconds = datalab_groups(heard[0][0].features, table.label[seen.rows])
        inside = [seen.rows[rows] for rows in groups]
        scores += duplicate_score(planted, "datalab", inside, case, seconds)
    if case.leaks:
        leaks = np.full(len(table), -1)
        leaks[found.row] = found.beside["leaks_to"]
        known = leaks[planted.leaked] >= 0
        exact = planted.exact
        numbers: dict[str, float | int | None] = {
            "exact": _share(known[exact]),
            "near": _share(known[~exact]),
        }
        told = leak_facts(seen).get("held_out_leaks", {})
        numbers["told"] = sum(told.values()) if isinstance(told, dict) else 0
        scores.append(AnomalyScore("leaks", "labelclean", numbers))
    odd = seen.outliers
    share = odd.seconds / took
    times = {"seconds": took, "outliers": odd.seconds, "share": share, "planted": odd.planted}
    return [*scores, AnomalyScore("time", "labelclean", times)]


def _outliers(
    planted: PlantedAnomalies,
    lost: Bools,
    seen: Observation,
    heard: tuple[PreparedFeatures, ClassPosteriors],
    case: AnomalyCase,
) -> list[AnomalyScore]:
    prepared, given = heard
    found = seen.outliers.found
    if found is None or found.probability is None:
        raise DataError(seen.outliers.why_not)
    answers: dict[str, Floats] = {"labelclean": found.probability}
    answers["Mahalanobis"] = np.asarray(given.distance, np.float64)
    _, similar = nearest_rows(prepared.features, max(_NEAR))
    for k in _NEAR:
        answers[f"{k} nearest"] = 1 - similar[:, k - 1].astype(np.float64)
    if case.rival:
        label = seen.manifest.label[seen.rows]
        answers["datalab"] = datalab_outliers(prepared.features, label)
    origin = planted.row[seen.rows]
    foreign = origin < 0
    already = np.where(foreign, False, lost[np.maximum(origin, 0)])
    original = ~np.isin(seen.rows, planted.copy)
    scores = []
    for name, wrong, rows in (
        ("outliers", foreign, original & ~already),
        ("none", already, original & ~foreign),
    ):
        if wrong[rows].any():
            scores += [
                AnomalyScore(name, method, _ranked(wrong[rows], answer[rows], method))
                for method, answer in answers.items()
            ]
    return scores


def _ranked(wrong: Bools, answer: Floats, method: str) -> dict[str, float | int | None]:
    own = method == "labelclean"
    said = answer > 0.5
    return {
        "rows": len(wrong),
        "share": float(wrong.mean()),
        "auroc": auroc(wrong, answer),
        "ap": average_precision(wrong, answer),
        "calibration": calibration_error(wrong, answer) if own else None,
        "precision": _share(wrong[said]) if own else None,
        "recall": _share(said[wrong]) if own else None,
    }


def duplicate_score(
    planted: PlantedAnomalies,
    method: str,
    groups: Sequence[Ints],
    case: AnomalyCase,
    seconds: float | None = None,
) -> list[AnomalyScore]:
    """Score groups: of pairs with a planted copy, how many are right; of copies, how many found."""
    if not case.copies:
        return []
    source = dict(zip(planted.copy.tolist(), planted.source.tolist(), strict=True))
    leaks = set(planted.leak.tolist())
    group = np.full(len(planted.row), -1)
    right = pairs = others = 0
    for number, members in enumerate(groups):
        rows = [row for row in members.tolist() if row not in leaks]
        group[rows] = number
        for at, one in enumerate(rows):
            for other in rows[:at]:
                if one in source or other in source:
                    pairs += 1
                    right += source.get(one, one) == source.get(other, other)
                else:
                    others += 1
    known = (group[planted.copy] >= 0) & (group[planted.copy] == group[planted.source])
    numbers: dict[str, float | int | None] = {
        "recall": float(known.mean()),
        "precision": right / pairs if pairs else None,
        **{name: _share(known[planted.way == at]) for at, name in enumerate(COPIES)},
        "other pairs": others,
        "seconds": seconds,
    }
    return [AnomalyScore("duplicates", method, numbers)]


def _share(values: Bools) -> float | None:
    return float(values.mean()) if len(values) else None
