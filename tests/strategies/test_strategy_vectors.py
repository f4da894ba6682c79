"""Values worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from labelclean.losses import build
from labelclean.strategies import Feed, Step, Verdict
from labelclean.strategies.bilevel import Bilevel, chunk_weights, deal
from labelclean.strategies.co_teaching import CoTeaching, kept_count, smallest
from labelclean.strategies.d2l import D2L, dimension, is_turn, label_share, local_dimension
from labelclean.strategies.dividemix import DivideMix, component_posterior, sharpened
from labelclean.strategies.elr_plus import ElrPlus, ramped
from labelclean.strategies.joint import Joint
from labelclean.strategies.mixup import Mixup
from labelclean.strategies.self_paced import MentornetPd, SelfPaced, nearest_rank
from labelclean.training.objective import judged_objective

Z, Z2 = [2.0, 1.0, -0.5], [1.0, 1.0, 0.0]


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def step_of(labels, *, progress=0.5, partner=None, share=1.0, first=None, **more) -> Step:
    given = torch.tensor(labels)
    rows = torch.arange(len(given))
    feed = Feed(rows, torch.zeros_like(rows), partner, share, first)
    start = Step(
        networks=(0,), feed=feed, labels=given, progress=progress, epochs_done=0.0,
        generator=np.random.default_rng(0), ask=lambda number, averaged: tensor([Z]),
    )  # fmt: skip
    return replace(start, **more)


def logits_of(losses) -> torch.Tensor:
    """(1, B, 2) logits whose cross entropy towards class 0 is as given."""
    p = torch.exp(-tensor(losses))
    return torch.stack([p.log(), (1 - p).log()], dim=1)[None]


def objective(loss, verdict, logits, labels):
    """Give the value of a step and its gradient by the logits."""
    logits = logits.clone().requires_grad_()
    given = torch.tensor(labels)
    built = build(loss)
    index = torch.arange(len(given))
    weight = torch.ones(len(given), dtype=torch.float64)
    total = judged_objective(built, verdict, logits, None, given, index, weight)
    (gradient,) = torch.autograd.grad(total, logits)
    return total.item(), gradient


def close(found, wanted, digits=9):
    torch.testing.assert_close(found, tensor(wanted), atol=10**-digits, rtol=0)


LOSSES = [0.2, 0.5, 1.0, 3.0]


def test_the_percentile_is_one_of_the_values():
    assert nearest_rank(tensor(LOSSES), 0.75).item() == 1.0


def test_self_paced():
    strategy = SelfPaced(share=0.75, decay=0.5)
    logits, labels = logits_of(LOSSES), [0, 0, 0, 0]
    thresholds, values = [], []
    for _ in range(3):
        verdict = strategy.judge(logits, step_of(labels))
        close(verdict.weights[0], [1, 1, 0, 0] if not thresholds else verdict.weights[0].tolist())
        thresholds.append(strategy.threshold.item())
        values.append(objective("cce", verdict, logits, labels)[0])
    assert thresholds == pytest.approx([0.5, 0.75, 0.875])
    assert values[0] == pytest.approx(0.175)


@pytest.mark.parametrize(
    ("progress", "weights", "value"),
    [
        (0.10, [1, 1, 1, 1], 1.175),
        (0.50, [1, 1, 0, 0], 0.175),
        (0.95, [1, 1, 0.5, 0], 0.3),
    ],
)
def test_mentornet(progress, weights, value):
    strategy = MentornetPd(share=0.75, decay=0.5, dropout=0)
    logits, labels = logits_of(LOSSES), [0, 0, 0, 0]
    verdict = strategy.judge(logits, step_of(labels, progress=progress))
    close(verdict.weights[0], weights)
    assert objective("cce", verdict, logits, labels)[0] == pytest.approx(value)
    if progress > 0.9:
        verdict = strategy.judge(logits, step_of(labels, progress=progress))
        close(verdict.weights[0], [1, 1, 0.75, 0])
        assert objective("cce", verdict, logits, labels)[0] == pytest.approx(0.3625)


def test_mentornet_leaves_rows_out_at_random():
    strategy = MentornetPd()
    logits, labels = logits_of([0.1] * 40), [0] * 40
    early = strategy.judge(logits, step_of(labels, progress=0.1)).weights
    late = strategy.judge(logits, step_of(labels, progress=0.175)).weights
    assert (int(early.sum()), int(late.sum())) == (20, 38)


def test_co_teaching():
    strategy = CoTeaching(forget=0.5, ramp=1)
    strategy.epoch = 1
    losses = [[0.1, 0.9, 0.4, 2.0], [0.3, 0.2, 1.5, 0.8]]
    logits = torch.cat([logits_of(line) for line in losses])
    verdict = strategy.judge(logits, step_of([0] * 4, networks=(0, 1)))
    close(verdict.weights, [[1, 1, 0, 0], [1, 0, 1, 0]])
    total, gradient = objective("cce", verdict, logits, [0] * 4)
    # Each network's own sum: .5 of the first, .9 of the second.
    assert total == pytest.approx(0.5 + 0.9)
    assert gradient[0, 2:].abs().sum() == 0


def test_co_teaching_forgets_more_and_more():
    strategy = CoTeaching(forget=0.4, ramp=9)
    found = [strategy.rate(epoch) for epoch in (0, 1, 2, 9, 50)]
    assert found == pytest.approx([0, 0.0444444444, 0.0888888889, 0.4, 0.4])
    assert kept_count(128, 0.4) == 76
    assert (kept_count(5, 0.8), kept_count(10, 0.9), kept_count(1, 0.9)) == (1, 1, 1)
    close(smallest(tensor([2.0, 1.0, 1.0, 1.0]), 2), [0, 1, 1, 0])


def test_mixup():
    strategy = Mixup()
    strategy.bind(torch.tensor([0, 2]), 3, 1)
    labels = [0, 2]
    logits = tensor([[Z, Z]])
    step = step_of(labels, partner=torch.tensor([1, 0]), share=0.7)
    verdict = strategy.judge(logits, step)
    close(verdict.targets[0], [[0.7, 0, 0.3], [0.3, 0, 0.7]])
    one = Verdict(targets=verdict.targets[:, :1])
    value, gradient = objective("cce", one, logits[:, :1], [0])
    assert value == pytest.approx(1.1215390319)
    close(gradient[0, 0], [-0.0103279139, 0.2537161816, -0.2433882678])
    value, gradient = objective("gce", one, logits[:, :1], [0])
    assert value == pytest.approx(0.6001601822)
    close(gradient[0, 0], [-0.1397618993, 0.1471269368, -0.0073650375])


def test_mixing_weights_come_from_their_distribution():
    strategy = Mixup(alpha=2.0)
    rng = np.random.default_rng(0)
    feeds = [strategy.feed((torch.arange(6),), rng) for _ in range(400)]
    shares = np.array([feed.share for feed in feeds])
    assert abs(shares.mean() - 0.5) < 0.03
    assert abs(shares.var() - 1 / 20) < 0.01
    assert all(sorted(feed.partner.tolist()) == list(range(6)) for feed in feeds)


def test_bilevel_weights():
    g = tensor([[1, 0], [1, 1], [-1, 1]])
    weight = chunk_weights(g @ g.T, 0.01)
    close(weight, [0, 0.5, -0.5])
    raw = (g @ g.T)[0, 1:] / ((g @ g.T).diagonal()[1:] + 0.01)
    close(raw, [0.4975124378, -0.4975124378])
    close((weight[:, None] * g).sum(0), [1, 0])


def test_bilevel_of_a_linear_head_is_the_product_of_gradients():
    features, labels = tensor([[1.0, 2.0], [0.0, 1.0]]), torch.tensor([0, 2])
    weights = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    bias = tensor(Z).requires_grad_()
    gradients = []
    for row, label in zip(features, labels, strict=True):
        value = torch.nn.functional.cross_entropy((row @ weights.T + bias)[None], label[None])
        parts = torch.autograd.grad(value, [weights, bias])
        gradients.append(torch.cat([part.flatten() for part in parts]))
    stacked = torch.stack(gradients)
    gram = stacked @ stacked.T
    assert gram[0, 1].item() == pytest.approx(-0.6091783288)
    close(gram.diagonal(), [0.9832812191, 2.8600018219])
    assert gram[0, 1].item() / (gram[1, 1].item() + 0.01) == pytest.approx(-0.2122571227)
    strategy = Bilevel(chunks=2)
    step = step_of([0, 2], features=features[None])
    verdict = strategy.judge(tensor([[Z, Z]]), step)
    close(verdict.weights, [[0, -1]])
    assert deal(torch.tensor([1, 0, 1, 0, 0]), 2).tolist() == [1, 0, 0, 1, 0]


def test_joint():
    strategy = Joint(alpha=1.2, beta=0.8, begin=5)
    strategy.bind(torch.tensor([0, 1]), 3, 10)
    strategy.prior = torch.full((3,), 1 / 3, dtype=torch.float64)
    strategy.current = tensor([[0.7, 0.2, 0.1], [0, 1, 0]])
    logits = tensor([[Z, [0, 0, 1]]]).requires_grad_()
    verdict = strategy.judge(logits, step_of([0, 1]))
    weight = torch.ones(2, dtype=torch.float64)
    total = judged_objective(
        build("cce"), verdict, logits, None, torch.tensor([0, 1]), torch.arange(2), weight
    )
    assert total.item() == pytest.approx(1.9270135874)
    assert verdict.penalty.item() == pytest.approx(1.2 * 0.0363973043 + 0.8 * 0.8710561866)
    (gradient,) = torch.autograd.grad(total, logits)
    wanted = [
        [-0.0341603407, 0.0122961216, 0.0218642191],
        [0.1964898005, -0.3915403363, 0.1950505357],
    ]
    close(gradient[0], wanted)


def test_joint_averages_its_ring():
    strategy = Joint(begin=2, ring=2, anew=0.9)
    strategy.bind(torch.tensor([0]), 3, 10)
    for epoch, said in enumerate(([0.6, 0.3, 0.1], [0.2, 0.5, 0.3])):
        strategy.epoch = epoch
        strategy.now = torch.tensor([said])
        assert strategy.targets is None
        strategy.end_epoch()
    torch.testing.assert_close(strategy.targets, torch.tensor([[0.4, 0.4, 0.2]]), atol=1e-3, rtol=0)
    assert strategy.targets.argmax(1).item() == 0
    rng = np.random.default_rng(0)
    plans = [strategy.start_epoch(epoch, None, rng) for epoch in range(10)]
    assert [plan.remember for plan in plans] == [True] + [False] * 9
    assert [plan.restore for plan in plans] == [False] * 9 + [True]


def test_d2l():
    close(local_dimension(tensor([[1, 2, 4]])), [1.4426950409])
    known = np.array([6, 4.4, 4.2, 4.1, 4, 4, 4.6])
    assert is_turn(known, 1)
    assert not is_turn(known, 2)
    assert not is_turn(np.array([6, 4.4, 4.2, 4.1, 4, 4, 4.43]), 1)
    assert known[1:6].mean() == pytest.approx(4.14)
    assert known[1:6].std() == pytest.approx(0.1496662955)
    assert label_share(6 / 120, known) == pytest.approx(0.9441218904)
    strategy = D2L()
    strategy.bind(torch.tensor([2]), 3, 120)
    strategy.alpha = label_share(0.5, np.array([4.0, 5.2]))
    assert strategy.alpha == pytest.approx(0.5220457768)
    verdict = strategy.judge(tensor([[Z]]), step_of([2]))
    close(verdict.targets[0, 0], [0.4779542232, 0, 0.5220457768])
    value, gradient = objective("cce", verdict, tensor([[Z]]), [2])
    assert value == pytest.approx(1.6766534738)
    close(gradient[0, 0], [0.2117178629, 0.2537161816, -0.4654340445])


def test_the_dimension_of_a_cloud_is_that_of_its_space():
    rng = np.random.default_rng(0)
    for width in (1, 2, 5):
        cloud = rng.random((128, width)) @ rng.normal(size=(width, 20))
        found = float(dimension(torch.from_numpy(cloud), 20))
        assert abs(found - width) < 0.25 * width + 0.15
    same = torch.zeros(30, 3)
    assert not torch.isfinite(dimension(same, 5))


def test_dividemix_posterior():
    found = component_posterior(
        np.array([0.3, 0.4]), np.array([0.6, 0.4]), np.array([0.1, 0.8]), np.array([0.01, 0.04])
    )
    np.testing.assert_allclose(found, [0.9023499537, 0.1975959950], atol=1e-9)
    turned = component_posterior(
        np.array([0.1, 0.3]), np.array([0.5, 0.5]), np.array([0.6, 0.3]), np.array([0.09, 0.0025])
    )
    np.testing.assert_allclose(turned, [0.0080, 0.908], atol=1e-3)


def test_dividemix_targets():
    mean = tensor([[0.5, 0.3, 0.2]])
    given = tensor([[1.0, 0, 0]])
    close(sharpened(0.8 * given + 0.2 * mean, 0.5), [[0.9936211973, 0.0044160942, 0.0019627085]])
    close(sharpened(mean, 0.5), [[0.6578947368, 0.2368421053, 0.1052631579]])


def test_dividemix_step():
    strategy = DivideMix(lambda_u=25, warmup=10)
    strategy.bind(torch.tensor([0, 1]), 3, 300)
    strategy.clean = tensor([[0.5, 0.5], [0.8, 0.5]])
    rows = torch.tensor([0, 0, 1, 1])
    feed = Feed(rows, torch.tensor([0, 1, 0, 1]), torch.tensor([2, 3, 0, 1]), 0.8, 2)
    said = tensor([[0.5, 0.3, 0.2]] * 4).log()
    step = step_of([0, 0, 1, 1], feed=feed, epochs_done=18.5, ask=lambda number, averaged: said)
    logits = tensor([[Z, Z, Z2, Z2]])
    verdict = strategy.judge(logits, step)
    close(verdict.targets[0, 0], [0.9264759052, 0.0509012964, 0.0226227984])
    close(verdict.targets[0, 2], [0.7250400289, 0.1903569031, 0.0846030680])
    close(verdict.penalty, 13.28125 * 0.0501511160 + 0.2067513831)
    value, _ = objective("cce", verdict, logits, [0, 0, 1, 1])
    assert value == pytest.approx(1.3518182162)
    assert value - verdict.penalty.item() == pytest.approx(0.4789973243)


def test_dividemix_warm_up_for_asymmetric_noise():
    strategy = DivideMix(confidence=1)
    strategy.bind(torch.tensor([0]), 3, 10)
    logits = tensor([[Z]]).requires_grad_()
    verdict = strategy.judge(logits, step_of([0]))
    weight = torch.ones(1, dtype=torch.float64)
    total = judged_objective(
        build("cce"), verdict, logits, None, torch.tensor([0]), torch.arange(1), weight
    )
    assert total.item() == pytest.approx(0.3715390319 - 0.7667845441)
    (gradient,) = torch.autograd.grad(total, logits)
    close(gradient[0, 0], [-0.0377381169, 0.1002801822, -0.0625420653])


def test_elr_plus():
    strategy = ElrPlus(beta=0.7, lam=3)
    strategy.bind(torch.tensor([0, 2]), 3, 10)
    strategy.memory = strategy.memory.double()
    said = torch.stack([tensor(Z2), tensor([0.1, 0.2, 0.7]).log()])
    feed = Feed(torch.arange(2), torch.zeros(2, dtype=torch.long), torch.tensor([1, 0]), 0.7)
    step = step_of([0, 2], feed=feed, ask=lambda number, averaged: said)
    logits = tensor([[Z, Z]]).requires_grad_()
    verdict = strategy.judge(logits, step)
    close(strategy.memory[0, 0], [0.1266956395, 0.1266956395, 0.0466087210])
    close(strategy.memory[0, 1], [0.03, 0.06, 0.21])
    assert strategy.memory[1].abs().sum() == 0
    q = 0.7 * strategy.memory[0, 0] + 0.3 * strategy.memory[0, 1]
    p = torch.softmax(tensor(Z), dim=0)
    assert float(q @ p) == pytest.approx(0.0998537254)
    assert np.log(1 - float(q @ p)) == pytest.approx(-0.1051980015)
    first = 3 * (1 - (q * torch.softmax(logits[0, 0], dim=0)).sum()).log()
    value = objective("cce", Verdict(verdict.targets[:, :1]), logits.detach()[:, :1], [0])[0]
    assert value == pytest.approx(1.1215390319)
    assert value + first.item() == pytest.approx(0.8059450273)
    (pull,) = torch.autograd.grad(first, logits)
    push = objective("cce", Verdict(verdict.targets[:, :1]), logits.detach()[:, :1], [0])[1]
    wanted = [-0.0053475029, 0.2479381239, -0.2425906210]
    close(pull[0, 0] + push[0, 0], wanted)
    other = 3 * (1 - float((0.7 * strategy.memory[0, 1] + 0.3 * strategy.memory[0, 0]) @ p))
    assert verdict.penalty.item() == pytest.approx((first.item() + 3 * np.log(other / 3)) / 2)


def test_elr_plus_averages_more_and_more():
    found = [0.997 * ramped(done, 40000) for done in (2, 20000, 40000)]
    assert found == pytest.approx([0.0067210928, 0.2856452825, 0.997])


@pytest.mark.parametrize("loss", ["cce", "gce", "sce", "mse"])
def test_the_gradient_of_a_step_agrees_with_differences(loss):
    logits = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    soft = torch.softmax(torch.randn(2, 3, 4, dtype=torch.float64), dim=-1)
    verdict = Verdict(soft, tensor([[1.0, 0.0, 0.5], [2.0, 1.0, 0.0]]), 2.0)
    _, gradient = objective(loss, verdict, logits, [0, 1, 3])
    for place in ((0, 0, 1), (1, 1, 3), (0, 1, 0)):
        ahead, behind = logits.clone(), logits.clone()
        ahead[place] += 1e-6
        behind[place] -= 1e-6
        numbers = [objective(loss, verdict, each, [0, 1, 3])[0] for each in (ahead, behind)]
        assert (numbers[0] - numbers[1]) / 2e-6 == pytest.approx(gradient[place].item(), abs=1e-8)
