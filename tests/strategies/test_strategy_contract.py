"""What every strategy of the catalogue promises."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from strategy_tasks import CLASSES, NAMES, ROWS, RUNTIME, make_task, small

from labelclean.records.recorder import Recorder
from labelclean.strategies import STRATEGIES, Feed, Step, Strategy, Verdict, build_strategy
from labelclean.training.checkpoint import Checkpoints, mapped
from labelclean.training.inference import predict_probs
from labelclean.training.loop import train
from labelclean.training.objective import held_to_labels


class KilledError(Exception):
    pass


def state(task) -> list[bytes]:
    return [value.numpy().tobytes() for value in task.model.state_dict().values()]


def run(task, runtime=RUNTIME):
    recorder = Recorder(task.label, task.settings.epochs)
    with runtime.seeded():
        train(task, runtime, recorder)
    return recorder.freeze(predict_probs(task.model, task.inputs, runtime))


@pytest.mark.parametrize("loss", ["cce", "gce", "imae", "nal", "elr", "adaptation"])
def test_the_strategy_that_does_nothing_is_plain_training_to_the_bit(loss):
    params = {"T": (np.eye(CLASSES) * 0.7 + 0.1).tolist()} if loss == "adaptation" else {}
    plain, seen = (make_task(each, loss, params=params) for each in ("plain", Strategy()))
    assert not plain.strategy.by_step
    assert seen.strategy.by_step
    first, second = run(plain), run(seen)
    assert state(plain) == state(seen)
    assert first.p_given.tobytes() == second.p_given.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_it_trains_and_every_row_is_recorded_in_every_epoch(name):
    task = make_task(name, epochs=12, learning_rate=0.05)
    records = run(task)
    assert np.isfinite(records.p_given).all()
    assert records.p_given.shape == (12, ROWS)
    truth = np.arange(ROWS) % CLASSES
    assert (records.probs.argmax(1) == truth).mean() > 0.6
    assert (records.target_given is None) == (task.strategy.targets is None)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("moment", [1, 2, 3])
def test_a_run_goes_on_to_the_same_bytes(tmp_path, name, moment):
    def attempt(folder, stop=None):
        task = make_task(name)
        folder.mkdir(exist_ok=True)
        recorder = Recorder(task.label, 4, allocate=mapped(folder))

        def tell(done, total):
            if done == stop:
                raise KilledError

        with RUNTIME.seeded():
            train(task, RUNTIME, recorder, checkpoints=Checkpoints(folder), on_progress=tell)
        records = recorder.freeze(predict_probs(task.model, task.inputs, RUNTIME))
        return [*state(task), records.p_given.tobytes(), records.probs.tobytes()]

    whole = attempt(tmp_path / "whole")
    with pytest.raises(KilledError):
        attempt(tmp_path / "cut", stop=moment)
    assert attempt(tmp_path / "cut") == whole


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 7, 60])
def test_batches_of_any_size_work(name, size):
    task = make_task(small(name), batch_size=size, epochs=3)
    assert np.isfinite(run(task).probs).all()


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_do_not_count_leave_the_networks_alone(name):
    task = make_task(name, epochs=2)
    before = state(task)
    task.weight[:] = 0
    run(task)
    penalties = {"joint", "dividemix", "elr_plus"}
    assert (state(task) == before) or name in penalties


def test_rows_a_person_vouched_for_count_whatever_a_strategy_says():
    # A threshold that never comes to any row's loss.
    strategy = {"share": 0.01, "decay": 0.999999}
    idle, moved = (make_task(build_strategy("self_paced", **strategy)) for _ in range(2))
    before = state(idle)
    run(idle)
    assert state(idle) == before
    run(replace(moved, verified=np.arange(ROWS) < 8))
    assert state(moved) != before


@pytest.mark.parametrize("name", ["joint", "d2l"])
def test_rows_a_person_vouched_for_keep_their_label(name):
    wrong = np.arange(ROWS) < 8
    free, held = (
        replace(make_task(name, epochs=30, learning_rate=0.03), verified=verified)
        for verified in (None, wrong)
    )
    learnt = [run(task).probs[np.arange(ROWS), task.label][wrong].mean() for task in (free, held)]
    assert learnt[1] > 1.5 * learnt[0]


def test_whose_label_stands_is_said_row_by_row():
    labels, vouched = torch.tensor([0, 1, 2]), torch.tensor([True, False, True])
    soft = torch.full((2, 3, 3), 1 / 3)
    found = held_to_labels(Verdict(soft, torch.zeros(2, 3), 3.0), vouched, labels, False)
    assert found.targets[:, vouched].tolist() == [[[1, 0, 0], [0, 0, 1]]] * 2
    assert (found.targets[:, 1] == soft[:, 1]).all()
    assert found.weights.tolist() == [[1, 0, 1]] * 2
    classes = held_to_labels(Verdict(torch.tensor([[2, 2, 0]])), vouched, labels, False)
    assert classes.targets.tolist() == [[0, 2, 2]]
    assert classes.weights is None
    shares = Verdict(weights=torch.tensor([[0.5, -0.5, 0.0]]))
    assert held_to_labels(shares, vouched, labels, True).weights.tolist() == [[0.5, -0.5, 0.0]]


def judged(name: str, order: torch.Tensor, progress: float = 0.5):
    """Let a new strategy judge one batch of twelve rows in some order."""
    strategy = small(name)
    labels = torch.arange(ROWS) % CLASSES
    strategy.bind(labels, CLASSES, 4)
    generator = torch.Generator().manual_seed(1)
    count = strategy.networks
    logits = torch.randn(count, 12, CLASSES, generator=generator, dtype=torch.float64)[:, order]
    features = torch.randn(count, 12, 5, generator=generator, dtype=torch.float64)[:, order]
    strategy.epoch = 2
    step = Step(
        networks=tuple(range(count)),
        feed=Feed(order, torch.zeros_like(order)),
        labels=labels[order],
        progress=progress,
        epochs_done=2.0,
        generator=np.random.default_rng(0),
        ask=lambda number, averaged: logits[0].detach(),
        features=features,
    )
    return strategy.judge(logits.requires_grad_(), step)


@pytest.mark.parametrize("name", sorted(set(NAMES) & {"self_paced", "co_teaching", "joint", "d2l"}))
def test_the_order_of_a_batch_does_not_matter(name):
    order = torch.from_numpy(np.random.default_rng(3).permutation(12))
    straight, mixed = judged(name, torch.arange(12)), judged(name, order)
    for attribute in ("weights", "targets"):
        first, second = getattr(straight, attribute), getattr(mixed, attribute)
        if first is not None:
            torch.testing.assert_close(first[:, order], second)
    if straight.penalty is not None:
        torch.testing.assert_close(straight.penalty, mixed.penalty)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"dividemix", "elr_plus"}))
@pytest.mark.parametrize("progress", [0.0, 0.5, 0.95])
def test_targets_are_distributions_and_weights_finite(name, progress):
    verdict = judged(name, torch.arange(12), progress)
    if verdict.targets is not None and verdict.targets.is_floating_point():
        torch.testing.assert_close(
            verdict.targets.sum(-1), torch.ones_like(verdict.targets[..., 0])
        )
        assert (verdict.targets >= 0).all()
    if verdict.weights is not None:
        assert torch.isfinite(verdict.weights).all()
        assert name == "bilevel" or (verdict.weights >= 0).all()


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_it_says_what_it_is(name):
    strategy = build_strategy(name)
    assert strategy.paper
    assert strategy.formula
    assert (type(strategy).__doc__ or "").strip()
    assert math.isfinite(strategy.cost)
    assert not list(strategy.parameters())
