"""The loop: what it optimises, what it records, how it stops, how it goes on."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from labelclean.errors import TrainingError
from labelclean.losses import LOSSES, build
from labelclean.models.head import Head
from labelclean.records.recorder import Recorder
from labelclean.training.checkpoint import Checkpoints, mapped
from labelclean.training.inference import predict_probs
from labelclean.training.loop import train
from labelclean.training.runtime import Runtime
from labelclean.training.settings import TrainSettings
from labelclean.training.task import Features, Task

N, D, C, EPOCHS = 60, 4, 3, 4
RUNTIME = Runtime(torch.device("cpu"))
PARAMS = {
    name: {"T": (np.eye(C) * 0.7 + 0.1).tolist()} for name in ("forward", "backward", "adaptation")
}


def make(loss="cce", *, params=None, label=None, validate=None, **settings) -> Task:
    rng = np.random.default_rng(0)
    truth = np.arange(N) % C
    matrix = (np.eye(C, D)[truth] * 3 + rng.normal(size=(N, D))).astype(np.float32)
    given = {"epochs": EPOCHS, "batch_size": 15} | settings
    training = TrainSettings(**given).resolved("head", N)
    with RUNTIME.seeded():
        built = build(loss, **(params or PARAMS.get(loss, {})))
        model = Head(D, C, hidden=8, attention=built.needs_attention)
    built.bind(N, C, training.epochs)
    label = truth if label is None else label
    return Task(
        model, Features(matrix), label, np.ones(N, np.float32),
        np.array([f"id{i}" for i in range(N)], object), built, training, validate,
    )  # fmt: skip


def run(task: Task, *, runtime=RUNTIME, **more):
    recorder = Recorder(task.label, task.settings.epochs)
    with runtime.seeded():
        progress = train(task, runtime, recorder, **more)
    probs = predict_probs(task.model, task.inputs, runtime)
    return recorder.freeze(probs, epochs=progress.epoch + 1), progress


@pytest.mark.parametrize("name", list(LOSSES))
def test_every_loss_trains_and_is_recorded(name):
    task = make(name, learning_rate=0.05, weight_decay=0.0, epochs=12, stratify=True)
    records, progress = run(task)
    assert progress.epoch == 11
    assert np.isfinite(records.p_given).all()
    assert (records.probs.argmax(1) == task.label).mean() > 0.6
    assert (records.loss is None) == (not task.loss.per_sample and task.loss.warmup_loss is None)
    assert (records.attention is None) == (not task.loss.needs_attention)
    assert (records.target_given is None) == (task.loss.targets is None)


def test_one_step_is_the_gradient_of_the_weighted_mean():
    task = make("cce", epochs=1, batch_size=N, optimizer="sgd", learning_rate=0.5, momentum=0.0,
                weight_decay=0.0, schedule="constant")  # fmt: skip
    weight = np.linspace(0.5, 2, N).astype(np.float32)
    task = Task(
        task.model, task.inputs, task.label, weight, task.sample_id, task.loss, task.settings
    )
    x, y = torch.from_numpy(task.inputs.matrix), torch.from_numpy(task.label)
    before = {name: p.detach().clone() for name, p in task.model.named_parameters()}
    values = torch.nn.functional.cross_entropy(task.model(x).logits, y, reduction="none")
    mean = (values * torch.from_numpy(weight)).sum() / float(weight.sum())
    gradients = torch.autograd.grad(mean, list(task.model.parameters()))
    run(task)
    for (name, p), gradient in zip(task.model.named_parameters(), gradients, strict=True):
        assert torch.allclose(p, before[name] - 0.5 * gradient, atol=1e-6), name


def test_samples_that_do_not_count_leave_the_model_alone():
    task = make("cce", epochs=1, batch_size=20, weight_decay=0.0)
    before = {name: value.clone() for name, value in task.model.state_dict().items()}
    run(replace(task, weight=np.zeros(N, np.float32)))
    for name, value in task.model.state_dict().items():
        assert torch.equal(value, before[name])


@pytest.mark.parametrize("name", ["cce", "imae", "gr"])
def test_accumulation_changes_nothing_but_memory(name):
    whole, _ = run(make(name, epochs=2))
    parts, _ = run(make(name, epochs=2, accumulate=4))
    assert np.allclose(whole.probs, parts.probs, atol=1e-5)


@pytest.mark.parametrize("seed", [0, 1])
def test_two_runs_with_one_seed_agree_to_the_bit(seed):
    runtime = replace(RUNTIME, seed=seed)
    first, _ = run(make("nal"), runtime=runtime)
    torch.rand(7)  # whatever was drawn before
    second, _ = run(make("nal"), runtime=runtime)
    assert first.p_given.tobytes() == second.p_given.tobytes()
    assert first.probs.tobytes() == second.probs.tobytes()


def test_another_seed_takes_the_samples_in_another_order():
    """From the same weights, so nothing else can differ; the whole set at once has no order."""
    for size, same in ((15, False), (N, True)):
        first, second = (
            run(make(batch_size=size), runtime=replace(RUNTIME, seed=seed))[0] for seed in (0, 1)
        )
        assert np.allclose(first.probs, second.probs, atol=1e-6) == same


def test_what_a_network_draws_depends_on_seed_and_epoch_alone():
    drawn = {}
    for seed in (0, 1):
        for epoch in (0, 1):
            runtime = replace(RUNTIME, seed=seed)
            with runtime.seeded():
                torch.rand(seed + epoch)
                runtime.seed_epoch(epoch)
                drawn[seed, epoch] = torch.rand(4).tolist()
                runtime.seed_epoch(epoch)
                assert torch.rand(4).tolist() == drawn[seed, epoch]
    assert len({tuple(values) for values in drawn.values()}) == 4


def test_training_leaves_the_global_generator_alone():
    torch.manual_seed(123)
    before = torch.random.get_rng_state()
    run(make())
    assert torch.equal(torch.random.get_rng_state(), before)


class KilledError(Exception):
    pass


@pytest.mark.parametrize("name", ["cce", "nal", "elr", "dmi", "adaptation", "gce_truncated"])
@pytest.mark.parametrize("moment", range(1, EPOCHS))
def test_a_run_goes_on_to_the_same_bytes(tmp_path, name, moment):
    def attempt(folder, stop=None):
        task = make(name, stratify=True)
        folder.mkdir(exist_ok=True)
        recorder = Recorder(task.label, EPOCHS, allocate=mapped(folder))

        def tell(done, total):
            if done == stop:
                raise KilledError

        with RUNTIME.seeded():
            train(task, RUNTIME, recorder, checkpoints=Checkpoints(folder), on_progress=tell)
        probs = predict_probs(task.model, task.inputs, RUNTIME)
        records = recorder.freeze(probs)
        return [v.tobytes() for v in (records.probs, records.p_given, records.margin)]

    whole = attempt(tmp_path / "whole")
    with pytest.raises(KilledError):
        attempt(tmp_path / "cut", stop=moment)
    again = attempt(tmp_path / "cut")
    assert again == whole
    assert len(list((tmp_path / "cut").glob("epoch-*"))) == 1


def test_a_checkpoint_without_its_end_is_not_taken_up(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    (tmp_path / ".epoch-00003.abcd.part").mkdir()
    assert checkpoints.load() is None


def test_a_loss_that_is_not_finite_stops_with_epoch_and_samples():
    task = make(batch_size=N)
    task.inputs.matrix[7] = np.inf
    with pytest.raises(TrainingError, match=r"epoch 1: .* is not finite for the samples id7\."):
        run(task)


def test_early_stop_keeps_the_best_epoch():
    accuracies = iter([0.2, 0.9, 0.8, 0.7, 0.6, 0.5])
    states = []

    def validate() -> float:
        states.append({k: v.clone() for k, v in task.model.state_dict().items()})
        return next(accuracies)

    task = make(epochs=6, patience=2, early_stop="noisy", validate=validate)
    records, progress = run(task)
    assert (progress.epoch, progress.best_epoch) == (3, 1)
    assert len(records.p_given) == 4
    for name, value in task.model.state_dict().items():
        assert torch.equal(value, states[1][name])


def test_a_warmup_loss_comes_first(monkeypatch):
    used = []
    cce, dmi = LOSSES["cce"], LOSSES["dmi"]
    for kind in (cce, dmi):
        compute = kind.compute

        def watched(self, *args, compute=compute):
            used.append(type(self).__name__)
            return compute(self, *args)

        monkeypatch.setattr(kind, "compute", watched)
    run(make("dmi", batch_size=N, stratify=True, epochs=10))
    first = used.index("Dmi")
    assert 0 < first == round(build("dmi").warmup_fraction * 10)
    assert set(used[:first]) == {"Cce"}
    assert set(used[first:]) == {"Dmi"}
