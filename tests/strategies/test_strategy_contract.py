"""What every strategy of the catalogue promises."""

import math

import numpy as np
import pytest
import torch
from strategy_tasks import CLASSES, NAMES, ROWS, RUNTIME, make_task, small

from labelclean.records.recorder import Recorder
from labelclean.strategies import STRATEGIES, Feed, Step, Strategy, build_strategy
from labelclean.training.checkpoint import Checkpoints, mapped
from labelclean.training.inference import predict_probs
from labelclean.training.loop import train


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
