"""Estimating the transition matrix, and the losses that use it."""

import pytest
import torch

from labelclean.errors import ConfigError
from labelclean.losses import build
from labelclean.losses.transition import from_anchors, from_confident_joint

TRUE_T = torch.tensor([[0.7, 0.3, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]], dtype=torch.float64)


def population(size: int = 6000, certainty: float = 40.0):
    """A model that has learned the noisy posterior pT of well separated classes, and its labels."""
    generator = torch.Generator().manual_seed(0)
    true = torch.arange(size) % 3
    clean = torch.softmax(certainty * torch.nn.functional.one_hot(true, 3).double(), 1)
    labels = torch.multinomial(TRUE_T[true], 1, generator=generator).squeeze(1)
    return clean, labels, true


def test_anchors_read_the_matrix_from_the_most_certain_samples():
    clean, _, _ = population()
    T = from_anchors(clean @ TRUE_T)
    torch.testing.assert_close(T, TRUE_T, atol=1e-9, rtol=0)


def test_anchors_below_the_percentile_ignore_an_outlier():
    clean, _, _ = population(size=300)
    probs = clean @ TRUE_T
    probs[7] = torch.tensor([0.99, 0.005, 0.005], dtype=torch.float64)
    before = probs.clone()
    assert from_anchors(probs)[0, 0] == pytest.approx(0.99)
    torch.testing.assert_close(from_anchors(probs, 0.97).sum(1), torch.ones(3).double())
    graded = torch.linspace(0, 1, 101, dtype=torch.float64)
    two = torch.stack((graded, 1 - graded), 1)
    torch.testing.assert_close(from_anchors(two, 0.97)[0], two[96])
    assert torch.equal(probs, before), "the caller's probabilities are not touched"


def test_the_confident_joint_recovers_the_matrix():
    clean, labels, _ = population()
    generator = torch.Generator().manual_seed(1)
    noisy_model = torch.softmax(
        clean.log() * 0.1 + 0.3 * torch.randn(6000, 3, generator=generator), 1
    )
    T = from_confident_joint(noisy_model, labels)
    torch.testing.assert_close(T.sum(1), torch.ones(3).double())
    assert (T - TRUE_T).abs().max() < 0.06


def test_the_confident_joint_by_hand():
    probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    labels = torch.tensor([0, 0, 0, 1, 1])
    # Thresholds: class 0 (.9 + .8 + .2) / 3 = .633, class 1 (.7 + .4) / 2 = .55.
    # Confident: rows 0, 1 -> 0; row 2 -> 1; row 3 -> 1; row 4 reaches neither.
    # Counts [given, true] [[2, 1], [0 -> 0, 1]], the rows scaled to 3 and 2 samples.
    joint = torch.tensor([[2.0, 1.0], [0.0, 2.0]]).double()
    expected = (joint / joint.sum(0)).T
    torch.testing.assert_close(from_confident_joint(probs, labels), expected)


def test_a_class_nobody_was_given_keeps_a_usable_row():
    clean, labels, _ = population(size=300)
    T = from_confident_joint(clean, labels.clamp(max=1))
    assert torch.isfinite(T).all()
    torch.testing.assert_close(T.sum(1), torch.ones(3).double())
    assert (T.sum(0) > 0).all()


@pytest.mark.parametrize("method", [None, "confident_joint", "anchor", "percentile"])
@pytest.mark.parametrize("name", ["forward", "backward", "adaptation"])
def test_an_unknown_matrix_is_estimated_once_from_the_warm_up_model(name, method):
    clean, labels, _ = population()
    loss = build(name, T=method)
    assert (loss.warmup_loss, loss.warmup_fraction) == ("cce", 0.5)
    loss.bind(6000, 3, epochs=10)
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ConfigError, match="transition matrix is not known yet"):
        loss(logits, labels[:4])
    assert loss.wants_probabilities(5)
    # A confident joint wants a model of the true class, anchors one of the noisy posterior.
    probs = clean if method in (None, "confident_joint") else clean @ TRUE_T
    loss.receive_probabilities(probs, labels)
    assert not loss.wants_probabilities(6)
    assert torch.isfinite(loss(logits, labels[:4])).all()
    assert (loss.current().double() - TRUE_T).abs().max() < 0.05
    copy = build(name, T=method)
    copy.bind(6000, 3)
    copy.load_state_dict(loss.state_dict())
    assert not copy.wants_probabilities(6)
    assert torch.equal(copy(logits, labels[:4]), loss(logits, labels[:4]))


@pytest.mark.parametrize("name", ["forward", "backward", "adaptation"])
def test_a_given_matrix_needs_no_warm_up(name):
    loss = build(name, T=TRUE_T)
    assert loss.warmup_loss is None
    assert not loss.wants_probabilities(0)
    torch.testing.assert_close(loss.current().double(), TRUE_T, atol=2e-3, rtol=0)


def test_adaptation_learns_the_matrix():
    """With the true classes known to the model, gradient steps on A alone find the noise."""
    clean, labels, _ = population(size=3000)
    logits = clean.clamp(min=1e-9).log().float()
    start = 0.8 * torch.eye(3) + 0.2 / 3
    loss = build("adaptation", T=start)
    optimiser = torch.optim.Adam(loss.parameters(), lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        loss(logits, labels).mean().backward()
        optimiser.step()
    assert (loss.current() - TRUE_T).abs().max() < 0.03
    assert loss.step_scale > 1


def test_the_gradient_of_the_scores_matches_the_formula():
    loss = build("adaptation", T=0.7 * torch.eye(3) + 0.1)
    logits = torch.tensor([[2.0, 1.0, -0.5]])
    loss(logits, torch.tensor([2])).sum().backward()
    p, T = torch.softmax(logits, 1)[0], loss.current()
    mixed = p @ T
    hit = torch.zeros(3, 3)
    hit[:, 2] = 1
    expected = -(p * T[:, 2] / mixed[2])[:, None] * (hit - T)
    torch.testing.assert_close(loss.scores.grad, expected)


def masked_adaptation():
    start = torch.tensor([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8]], dtype=torch.float64)
    loss = build("adaptation", T=start.tolist(), mask=[[1, 1, 0], [1, 0, 0], [0, 0, 0]])
    loss.bind(1, 3)
    with torch.no_grad():
        loss.scores = torch.nn.Parameter(start.log())
    return loss


def test_what_the_mask_forbids_stays_impossible():
    """Values by hand; the diagonal is possible whatever the mask says."""
    loss = masked_adaptation()
    rows = [[0.8421052632, 0.1578947368, 0], [1 / 3, 2 / 3, 0], [0, 0, 1]]
    wanted = torch.tensor(rows, dtype=torch.float64)
    torch.testing.assert_close(loss.current(), wanted, atol=1e-8, rtol=0)
    assert (loss.current()[wanted == 0] == 0).all()
    logits = torch.tensor([[2.0, 1.0, -0.5]], dtype=torch.float64, requires_grad=True)
    value = loss(logits, torch.tensor([1])).sum()
    assert value.item() == pytest.approx(1.2799913207)
    by_logits, by_scores = torch.autograd.grad(value, [logits, loss.scores])
    expected = torch.tensor([[0.2980172713, -0.3546290036, 0.0566117322]], dtype=torch.float64)
    torch.testing.assert_close(by_logits, expected, atol=1e-8, rtol=0)
    rows = [[0.3298145809, -0.3298145809, 0], [0.2027817284, -0.2027817284, 0], [0, 0, 0]]
    torch.testing.assert_close(
        by_scores, torch.tensor(rows, dtype=torch.float64), atol=1e-8, rtol=0
    )


def test_a_label_that_the_mask_makes_improbable_leaves_a_finite_loss():
    loss = masked_adaptation()
    logits = torch.tensor([[60.0, -60.0, -60.0]], dtype=torch.float64, requires_grad=True)
    value = loss(logits, torch.tensor([2])).sum()
    (gradient,) = torch.autograd.grad(value, logits)
    assert torch.isfinite(value)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ([[1, 1, 0]], r"shape \(1, 3\)"),
        ([[1, 0.5], [0, 1]], "holds 0.5"),
        ("all", "not a matrix"),
    ],
)
def test_a_mask_that_is_none_is_refused(mask, words):
    with pytest.raises(ConfigError, match=words):
        build("adaptation", mask=mask)


def test_a_mask_for_other_classes_is_refused():
    with pytest.raises(ConfigError, match="mask is for 2 classes and T for 3"):
        build("adaptation", T=(0.7 * torch.eye(3) + 0.1).tolist(), mask=[[1, 0], [0, 1]])
    with pytest.raises(ConfigError, match="mask is for 2 classes, but the data has 3"):
        build("adaptation", mask=[[1, 0], [0, 1]]).bind(5, 3)
