"""Retrieval: is the same identity, seen by another camera, among the nearest?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.arrays import Floats
from labelclean.errors import DataError

JUNK = -1
"""Identity of gallery rows that count neither as right nor as wrong."""


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Embeddings of one side of a search.

    Args:
        embedding: (N, D).
        identity: (N,) who is seen; JUNK in the gallery: nobody in particular.
        camera: (N,) which camera saw it.
    """

    embedding: Floats
    identity: NDArray[np.int64]
    camera: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """How well a gallery was searched.

    Args:
        mean_ap: Mean of (1/n) sum_j j / rank of hit j.
        mean_ap_trapezoid: The same with trapezoids under the precision-recall curve, as the
            authors of MARS compute it; never larger.
        cmc: (K,) share of queries with a hit among the first k.
        queries: Queries that were scored.
        skipped: Queries without any right row in the gallery, left out of all means.
    """

    mean_ap: float
    mean_ap_trapezoid: float
    cmc: Floats
    queries: int
    skipped: int


def mean_frames(side: RetrievalSet, group: NDArray[np.int64]) -> RetrievalSet:
    """Make one row of every video: the mean of its frames, each of length 1.

    Args:
        side: (N,) frames.
        group: (N,) number of the video a frame belongs to.

    Raises:
        DataError: Frames of a video differ in identity or camera.
    """
    _, first, place = np.unique(group, return_index=True, return_inverse=True)
    for name in ("identity", "camera"):
        values = getattr(side, name)
        wrong = np.flatnonzero(values != values[first][place])
        if len(wrong):
            raise DataError(
                f"group {group[wrong[0]]} holds rows of more than one {name} ({values[wrong[0]]} "
                f"and {values[first][place][wrong[0]]}); a group is one video of one identity."
            )
    total = np.zeros((len(first), side.embedding.shape[1]))
    np.add.at(total, place, unit_length(side.embedding))
    mean = total / np.bincount(place)[:, None]
    return RetrievalSet(mean, side.identity[first], side.camera[first])


def unit_length(rows: Floats) -> Floats:
    """Scale (N, D) rows to length 1; rows of zeros stay."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1))


def retrieval_scores(
    query: RetrievalSet, gallery: RetrievalSet, ranks: int = 20
) -> RetrievalScores:
    """Search the gallery by cosine for every query.

    Before ranks are counted, gallery rows of JUNK and those of the query's own identity and camera
    (the query itself among them) are taken out. Equal distances keep the gallery's order.

    Raises:
        DataError: No query has a right row in the gallery.
    """
    sources, targets = unit_length(query.embedding), unit_length(gallery.embedding)
    precise, trapezoid, found = [], [], np.zeros(ranks)
    skipped = 0
    for row, identity, camera in zip(sources, query.identity, query.camera, strict=True):
        order = np.argsort(-(targets @ row), kind="stable")
        same, seen = gallery.identity[order] == identity, gallery.camera[order] == camera
        kept = (gallery.identity[order] != JUNK) & ~(same & seen)
        hits = np.flatnonzero(same[kept])
        if not len(hits):
            skipped += 1
            continue
        precise.append(average_precision_of(hits))
        trapezoid.append(trapezoid_precision(hits))
        found[hits[0] :] += 1
    if not precise:
        raise DataError(
            f"none of {len(sources)} queries has its identity in the gallery under another camera."
        )
    count = len(precise)
    scores = float(np.mean(precise)), float(np.mean(trapezoid))
    return RetrievalScores(*scores, found / count, count, skipped)


def average_precision_of(hits: NDArray[np.int64]) -> float:
    """Give the average precision of 0-based ranks of hits, ascending."""
    return float(np.mean(np.arange(1, len(hits) + 1) / (hits + 1)))


def trapezoid_precision(hits: NDArray[np.int64]) -> float:
    """Give the area by trapezoids: between hits only recall stands still, so only hits count."""
    done = np.arange(1, len(hits) + 1)
    after = done / (hits + 1)
    # Precision just before a hit; before the first row it counts as 1.
    before = np.where(hits > 0, (done - 1) / np.maximum(hits, 1), 1.0)
    return float(np.mean((before + after) / 2))
