"""Retrieval: values by hand, another implementation, and the command from file to file."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from labelclean.benchmark.retrieval import (
    RetrievalSet,
    average_precision_of,
    mean_frames,
    retrieval_scores,
    trapezoid_precision,
    unit_length,
)
from labelclean.cli import cli
from labelclean.errors import DataError


def angles(*degrees: float) -> np.ndarray:
    """(N, 2) points on a circle: the cosine of two falls with the angle between them."""
    return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)


def side(embedding, identity, camera) -> RetrievalSet:
    return RetrievalSet(np.asarray(embedding, float), np.array(identity), np.array(camera))


def test_values_worked_out_by_hand():
    gallery = side(
        angles(1, 2, 3, 4, 5, 6, 7), [7, 3, 7, -1, 0, 7, 5], [1, 1, 2, 3, 4, 3, 1]
    )  # for the query: junk, wrong, good, junk, wrong, good, wrong
    first = retrieval_scores(side(angles(0), [7], [1]), gallery, ranks=5)
    np.testing.assert_allclose(first.cmc, [0, 1, 1, 1, 1])
    assert first.mean_ap == pytest.approx(0.5)
    assert first.mean_ap_trapezoid == pytest.approx(0.3333333333)
    second = np.array([0, 2])
    assert average_precision_of(second) == pytest.approx(0.8333333333)
    assert trapezoid_precision(second) == pytest.approx(0.7916666667)


def test_queries_that_nothing_answers_are_left_out_and_counted():
    gallery = side(angles(1, 2), [1, 2], [0, 0])
    found = retrieval_scores(side(angles(0, 0, 0), [1, 2, 1], [1, 0, 0]), gallery)
    assert (found.queries, found.skipped, found.mean_ap) == (1, 2, 1.0)
    with pytest.raises(DataError, match="none of 1 queries"):
        retrieval_scores(side(angles(0), [9], [1]), gallery)


def by_loops(query: RetrievalSet, gallery: RetrievalSet):
    """The definition again, rank by rank."""
    precise, areas, firsts = [], [], []
    for q in range(len(query.identity)):
        scores = []
        for g in range(len(gallery.identity)):
            a, b = query.embedding[q], gallery.embedding[g]
            scores.append(a @ b / np.sqrt(a @ a) / np.sqrt(b @ b))
        good = []
        for g in sorted(range(len(scores)), key=lambda g: -scores[g]):
            own = gallery.identity[g] == query.identity[q]
            if gallery.identity[g] == -1 or (own and gallery.camera[g] == query.camera[q]):
                continue
            good.append(bool(own))
        if not any(good):
            continue
        total, area, hits, before = 0.0, 0.0, 0, 1.0
        for rank, hit in enumerate(good, 1):
            hits += hit
            total += hit * hits / rank
            area += hit * (hits / rank + before) / 2
            before = hits / rank
        precise.append(total / sum(good))
        areas.append(area / sum(good))
        firsts.append(good.index(True))
    cmc = [np.mean([first < k for first in firsts]) for k in range(1, 21)]
    return np.mean(precise), np.mean(areas), cmc


@pytest.mark.parametrize("seed", range(5))
def test_another_implementation_agrees(seed):
    rng = np.random.default_rng(seed)
    query = side(rng.normal(size=(40, 8)), rng.integers(0, 12, 40), rng.integers(0, 3, 40))
    gallery = side(rng.normal(size=(150, 8)), rng.integers(-1, 12, 150), rng.integers(0, 3, 150))
    found = retrieval_scores(query, gallery)
    precise, area, cmc = by_loops(query, gallery)
    assert abs(found.mean_ap - precise) < 1e-12
    assert abs(found.mean_ap_trapezoid - area) < 1e-12
    np.testing.assert_allclose(found.cmc, cmc, atol=1e-12)
    assert found.mean_ap_trapezoid <= found.mean_ap


def test_a_video_is_the_mean_of_its_frames():
    frames = side([[2, 0], [0, 1], [0, 5]], [1, 1, 4], [0, 0, 2])
    found = mean_frames(frames, np.array([0, 0, 1]))
    np.testing.assert_allclose(found.embedding, [[0.5, 0.5], [0, 1]])
    assert found.identity.tolist() == [1, 4]
    with pytest.raises(DataError, match="more than one identity"):
        mean_frames(frames, np.array([0, 1, 1]))
    assert unit_length(np.zeros((1, 3))).tolist() == [[0, 0, 0]]


def test_the_command_reads_splits_cameras_and_groups(tmp_path):
    table = pd.DataFrame(
        {
            "image": [f"{n}.png" for n in range(6)],
            "label": [7, 7, 7, 3, -1, 7],
            "split": ["query", "query", "gallery", "gallery", "gallery", "train"],
            "camera": ["a", "a", "b", "b", "b", "b"],
            "group": ["q", "q", "g1", "g2", "g3", "t"],
        }
    )
    manifest = tmp_path / "people.csv"
    table.to_csv(manifest, index=False)
    np.save(tmp_path / "e.npy", angles(-5, 5, 8, 4, 0, 0))
    flags = ["--embeddings", str(tmp_path / "e.npy"), "--camera-col", "camera"]
    start = ["benchmark", "retrieval", str(manifest), *flags]
    result = CliRunner().invoke(cli, [*start, "--json"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["queries"], facts["skipped"]) == (1, 0)
    assert facts["mean_ap"] == pytest.approx(0.5)
    assert facts["cmc"][:2] == [0, 1]
    assert "mAP 0.5000" in CliRunner().invoke(cli, start).stdout
    wrong = CliRunner().invoke(cli, [*start[:-1], "cam"])
    assert wrong.exit_code == 2
    assert "Did you mean 'camera'" in wrong.stderr
    table.drop(columns="split").to_csv(manifest, index=False)
    none = CliRunner().invoke(cli, start)
    assert none.exit_code == 3
    assert "no row has split 'query'" in none.stderr
