"""What losses remember: start, schedule, duplicates, several processes."""

import pytest
import torch
from torch.nn import functional as F

from labelclean.errors import ConfigError
from labelclean.losses import build
from labelclean.losses.base import resolve_start


def batch(size: int = 6, classes: int = 3, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(size, classes, generator=generator)
    labels = torch.randint(classes, (size,), generator=generator)
    return logits, labels, torch.arange(size), torch.randn(size, generator=generator)


def bound(name: str, size: int = 6, epochs: int | None = 100, **params: object):
    loss = build(name, **params)
    loss.bind(size, 3, epochs=epochs)
    return loss


@pytest.mark.parametrize(
    ("epochs", "start"), [(1, 1), (5, 1), (25, 3), (50, 6), (100, 12), (101, 13), (None, 1)]
)
def test_start_is_twelve_percent_of_the_epochs_and_never_epoch_zero(epochs, start):
    assert resolve_start(None, epochs) == start
    assert resolve_start(0, epochs) == 0


@pytest.mark.parametrize("name", ["nal", "selc"])
def test_a_row_starts_at_the_given_label_on_first_sight(name):
    loss = bound(name)
    logits, labels, index, attention = batch()
    loss(logits[:4], labels[:4], index=index[:4], attention=attention[:4])
    assert torch.equal(loss.targets[:4], F.one_hot(labels[:4], 3).float())
    assert torch.equal(loss.targets[4:], torch.zeros(2, 3))
    first = loss.targets.clone()
    loss.start_epoch(11)
    loss(logits[:4] + 1, labels[:4], index=index[:4], attention=attention[:4])
    assert torch.equal(loss.targets, first), "nothing moves before epoch 12 of 100"


@pytest.mark.parametrize(("name", "keep"), [("nal", 0.9), ("selc", 0.9), ("elr", 0.7)])
def test_rows_follow_the_predictions_and_the_loss_reads_the_updated_rows(name, keep):
    loss = bound(name)
    logits, labels, index, attention = batch()
    p = torch.softmax(logits, 1)
    row = F.one_hot(labels, 3).float()
    if name == "elr":
        row = torch.zeros(6, 3)
        p = p.clamp(1e-4, 1 - 1e-4)
        p = p / p.sum(1, keepdim=True)
    loss.start_epoch(12)
    for _ in range(3):
        row = keep * row + (1 - keep) * p
        values = loss(logits, labels, index=index, attention=attention)
        torch.testing.assert_close(loss.targets, row)
        log_p = torch.log_softmax(logits, 1)
        tau = torch.sigmoid(attention)[:, None]
        expected = {
            "selc": -(row * log_p).sum(1),
            "elr": -log_p.gather(1, labels[:, None]).squeeze(1)
            + 3 * torch.log(1 - (row * log_p.exp()).sum(1)),
            "nal": -(row * torch.log(tau * log_p.exp() + (1 - tau) * row)).sum(1)
            - 0.5 * tau.log().squeeze(1),
        }[name]
        torch.testing.assert_close(values, expected)


def test_nal_updates_only_in_every_nth_epoch():
    loss = bound("nal", every=10, start=5)
    moved = []
    arguments = batch()
    for epoch in range(30):
        before = loss.targets.clone()
        loss.start_epoch(epoch)
        loss(*arguments)
        if epoch and not torch.equal(before, loss.targets):
            moved.append(epoch)
    assert moved == [5, 15, 25]


@pytest.mark.parametrize("name", ["nal", "selc", "elr"])
def test_evaluation_mode_reads_and_does_not_write(name):
    loss = bound(name)
    loss.start_epoch(12)
    arguments = batch()
    trained = loss(*arguments)
    state = {key: value.clone() for key, value in loss.state_dict().items()}
    loss.eval()
    torch.testing.assert_close(loss(*arguments), trained)
    assert all(torch.equal(state[key], value) for key, value in loss.state_dict().items())


@pytest.mark.parametrize("name", ["nal", "selc", "elr"])
def test_of_a_sample_that_occurs_twice_the_first_counts(name):
    logits, labels, _, attention = batch()
    index = torch.tensor([3, 0, 3, 1, 0, 3])
    labels = labels[index]
    doubled, single = bound(name), bound(name)
    for loss in (doubled, single):
        loss.start_epoch(12)
    first = [0, 1, 3]
    single(logits[first], labels[first], index=index[first], attention=attention[first])
    values = doubled(logits, labels, index=index, attention=attention)
    assert torch.equal(doubled.targets, single.targets)
    doubled.eval()
    again = doubled(logits, labels, index=index, attention=attention)
    torch.testing.assert_close(values, again)


@pytest.mark.parametrize("name", ["nal", "selc", "elr"])
@pytest.mark.parametrize("epoch", [0, 12])
def test_two_processes_that_gather_keep_the_memory_of_one(name, epoch):
    arguments = batch()
    alone = bound(name)
    alone.start_epoch(epoch)
    expected = alone(*arguments)
    halves = [tuple(a[part] for a in arguments) for part in (slice(0, 3), slice(3, 6))]
    sent = []
    for half in halves:  # first pass: what every process would send
        loss = bound(name)
        loss.start_epoch(epoch)
        loss.gather = lambda index, rows: sent.append((index, rows.clone())) or (index, rows)
        loss(*half)
    everyone = tuple(torch.cat(parts) for parts in zip(*sent, strict=True))
    for half, part in zip(halves, (slice(0, 3), slice(3, 6)), strict=True):
        loss = bound(name)
        loss.start_epoch(epoch)
        loss.gather = lambda index, rows: everyone
        torch.testing.assert_close(loss(*half), expected[part])
        assert torch.equal(loss.targets, alone.targets)
        assert bool(loss.memory.seen.all())


def test_truncated_gce_prunes_by_received_probabilities_and_lets_samples_return():
    loss = bound("gce_truncated", epochs=120)
    logits, labels, index, _ = batch()
    gce = build("gce")(logits, labels)
    assert loss.mask.all()
    torch.testing.assert_close(loss(logits, labels, index=index), gce)
    wanted = [epoch for epoch in range(120) if loss.wants_probabilities(epoch)]
    assert wanted == list(range(40, 120, 10))
    probs = torch.full((6, 3), 0.2)
    probs[torch.arange(6), labels] = torch.tensor([0.6, 0.4, 0.6, 0.5, 0.9, 0.1])
    loss.receive_probabilities(probs, labels)
    assert loss.mask.tolist() == [True, False, True, False, True, False]
    values = loss(logits, labels, index=index)
    constant = (1 - 0.5**0.7) / 0.7
    torch.testing.assert_close(values, torch.where(loss.mask, gce, constant))
    loss.receive_probabilities(1 - probs, labels)
    assert loss.mask.tolist() == [False, True, False, False, False, True]


def test_truncated_gce_refuses_probabilities_of_other_samples():
    with pytest.raises(ConfigError, match=r"probabilities of 2 samples; bind\(2, 3\) comes first"):
        bound("gce_truncated").receive_probabilities(torch.ones(2, 3), torch.zeros(2).long())
