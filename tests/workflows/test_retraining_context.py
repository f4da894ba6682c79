"""One training of a retraining: what it may see, what counts how much, what is measured."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from labelclean.data.scan import scan_features
from labelclean.options import RunOptions
from labelclean.recipe import load_recipe
from labelclean.runs.reading import StoredRun
from labelclean.runs.relabelled import Relabelled
from labelclean.training.runtime import Runtime
from labelclean.workflows.evaluation_split import EvaluationSplit
from labelclean.workflows.retraining_context import RetrainingContext, choose_loss, train_rows
from small_manifests import manifest_of

NAMES = np.array(["ant", "bee", "cat"])
ROWS, EXAM, DAMAGED = 240, 200, 7  # the evaluation is from row 200
SETTINGS = (
    "training.mode=head", "training.epochs=5", "training.batch_size=40",
    "training.learning_rate=0.05", "training.weight_decay=0",
)  # fmt: skip


@pytest.fixture
def context(tmp_path: Path) -> RetrainingContext:
    """Three clouds of points; two fifths of the given labels are wrong, the corrected are right."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, ROWS)
    given = np.where(rng.random(ROWS) < 0.4, (true + 1) % 3, true)
    features = (5 * np.eye(3, 4)[true] + rng.normal(size=(ROWS, 4))).astype(np.float32)
    features[DAMAGED] = np.nan
    manifest = manifest_of(NAMES[true].tolist(), arrays=features)
    evaluation = np.arange(ROWS) >= EXAM
    scan = scan_features(features)
    data = Relabelled(
        manifest=manifest, given=given, audited=scan.readable, kept=scan.readable,
        trust=np.ones(ROWS), truth=None, decided=0,
    )  # fmt: skip
    recipe = load_recipe(None, (*SETTINGS, "loss.name=cce"))
    return RetrainingContext(
        run=StoredRun(tmp_path, {}, recipe),
        data=data,
        scan=scan,
        evaluation=EvaluationSplit(evaluation, true, "held-out slice", "given", 0),
        recipe=recipe,
        runtime=Runtime(torch.device("cpu")),
        options=RunOptions(no_cache=True),
        work=tmp_path / "work",
        labels_from="run",
    )


def probs(context, label, chosen, name, **more) -> np.ndarray:
    return train_rows(context, label, chosen, name, **more).probs


def moved(label: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.where(rows, (label + 1) % 3, label)


def test_rows_of_the_exam_and_rows_not_chosen_teach_nothing(context):
    label, kept = context.data.manifest.label, context.data.kept
    chosen = kept & (np.arange(ROWS) % 4 > 0)
    plain = train_rows(context, label, chosen, "a")
    assert plain.found["trained_rows"] == (chosen & ~context.evaluation.rows).sum()
    other = moved(label, context.evaluation.rows | ~chosen)
    assert probs(context, other, chosen, "b").tobytes() == plain.probs.tobytes()
    assert probs(context, moved(label, chosen), chosen, "c").tobytes() != plain.probs.tobytes()


def test_every_readable_row_is_answered(context):
    said = probs(context, context.data.manifest.label, context.data.kept, "a")
    assert said.shape == (ROWS, 3)
    assert np.isnan(said[DAMAGED]).all()
    assert np.allclose(np.delete(said, DAMAGED, axis=0).sum(axis=1), 1, atol=1e-5)


def test_right_labels_teach_better_than_wrong_ones_and_the_best_epoch_is_told(context):
    before = train_rows(context, context.data.given, context.data.audited, "before").found
    after = train_rows(context, context.data.manifest.label, context.data.kept, "after").found
    assert after["accuracy"] > 0.9
    assert after["accuracy"] > before["accuracy"]
    for found in (before, after):
        assert found["best_accuracy"] >= found["accuracy"]
        assert 1 <= found["best_epoch"] <= 5


def test_a_label_nobody_trusts_teaches_nothing(context):
    label, kept = context.data.manifest.label, context.data.kept
    doubted = np.arange(ROWS) % 3 == 0
    trust = np.where(doubted, 0.0, 1.0)
    one, two = (
        probs(context, given, kept, name, trust=trust)
        for given, name in ((label, "a"), (moved(label, doubted), "b"))
    )
    assert np.array_equal(one, two, equal_nan=True)
    untold = probs(context, moved(label, doubted), kept, "c")
    assert not np.array_equal(one, untold, equal_nan=True)


def test_trust_and_the_weights_of_the_table_are_multiplied(context):
    label, kept = context.data.manifest.label, context.data.kept
    trust = np.linspace(0.1, 1, ROWS)
    weight = np.linspace(2, 0.5, ROWS)
    weighted = replace(context.data.manifest, sample_weight=weight)
    heavy = replace(context, data=replace(context.data, manifest=weighted))
    both = probs(heavy, label, kept, "a", trust=trust)
    product = probs(context, label, kept, "b", trust=trust * weight)
    assert np.array_equal(both, product, equal_nan=True)
    assert not np.array_equal(both, probs(heavy, label, kept, "c"), equal_nan=True)


def test_the_loss_of_the_run_is_tried_against_plain_cross_entropy(context):
    """A focus that all but forgets what is fitted learns less from labels that are right."""
    slow = load_recipe(None, (*SETTINGS, "loss.name=focal", "loss.gamma=60"))
    found = choose_loss(replace(context, recipe=slow))
    assert list(found) == ["focal", "cce"]
    assert found["cce"] > 0.9
    assert found["focal"] < found["cce"]
    assert list(choose_loss(replace(context, work=context.work / "plain"))) == ["cce"]


def test_agreement_counts_as_much_as_a_label_is_trusted(context):
    """Half of the corrected labels are nonsense; nobody trusts these, so they cost nothing."""
    rows = np.arange(ROWS) % 2 == 0
    wrong = moved(context.data.manifest.label, rows)
    manifest = replace(context.data.manifest, label=wrong)
    shares = []
    for name, trust in (("all", np.ones(ROWS)), ("some", np.where(rows, 0.0, 1.0))):
        data = replace(context.data, manifest=manifest, trust=trust)
        # A folder each: a training goes on where an earlier one in its folder ended.
        told = replace(context, data=data, work=context.work / name)
        shares.append(choose_loss(told)["cce"])
    assert shares[0] < 0.75
    assert shares[1] > 0.9
