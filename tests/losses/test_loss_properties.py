"""Identities, limits and flags that hold between the losses."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labelclean.losses import LOSSES, build
from labelclean.losses.attention import attention_loss

PER_SAMPLE = [name for name in LOSSES if name != "dmi"]


def sample(classes: int = 5, size: int = 40, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(size, classes, generator=generator, dtype=torch.float64)
    return logits, torch.randint(classes, (size,), generator=generator)


def gradient(loss, logits, labels):
    logits = logits.clone().requires_grad_()
    return torch.autograd.grad(loss(logits, labels).sum(), logits)[0]


def over_labels(loss, logits):
    """Sum a loss over all labels that could have been given, (B,)."""
    size, classes = logits.shape
    index, attention = torch.arange(size), torch.zeros(size, dtype=logits.dtype)
    return sum(
        loss(logits, torch.full((size,), label), index=index, attention=attention)
        for label in range(classes)
    )


@settings(max_examples=30, deadline=None)
@given(
    classes=st.integers(2, 12),
    scale=st.floats(0.01, 60),
    seed=st.integers(0, 2**31),
)
def test_mae_sums_to_two_c_minus_two_over_the_labels(classes, scale, seed):
    logits, _ = sample(classes, 6, seed)
    sums = over_labels(build("mae"), scale * logits)
    torch.testing.assert_close(sums, torch.full_like(sums, 2 * classes - 2))


@pytest.mark.parametrize("name", PER_SAMPLE)
def test_the_symmetric_flag_tells_the_truth(name, make_loss):
    logits, _ = sample()
    sums = over_labels(make_loss(name, samples=40).eval(), logits).detach()
    constant = float(sums.max() - sums.min()) < 1e-9
    assert make_loss(name).symmetric == constant


@pytest.mark.parametrize(
    ("name", "params"), [("gce", {"q": 1}), ("sce", {"alpha": 0}), ("nce_rce", {"alpha": 3})]
)
def test_parameters_can_make_a_loss_symmetric(name, params):
    loss = build(name, **params)
    sums = over_labels(loss, sample()[0])
    assert loss.symmetric
    assert float(sums.max() - sums.min()) < 1e-9


# The surrogates of imae and gr are no losses; adaptation is bounded only while its T stands still.
@pytest.mark.parametrize(
    "name", [name for name in PER_SAMPLE if name not in ("imae", "gr", "adaptation")]
)
def test_the_bounded_flag_tells_the_truth(name, make_loss):
    """An unbounded loss keeps growing when the given label becomes ever less probable."""
    loss = make_loss(name, classes=3, samples=2).eval()
    logits = torch.tensor([(0.0, 300.0, 300.0), (0.0, 600.0, 600.0)], dtype=torch.float64)
    # NAL grows with the attention as well; trust the model fully.
    attention = torch.tensor([800.0, 800.0], dtype=torch.float64)
    labels = torch.zeros(2, dtype=torch.int64)
    near, far = loss(logits, labels, index=torch.arange(2), attention=attention)
    assert loss.bounded == (abs(float(far - near)) < 0.1)


@pytest.mark.parametrize("T", [0.5, 2, 8, 16])
@pytest.mark.parametrize("normalize", ["weights", "none"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_imae_is_gr_with_lambda_one_bit_for_bit(T, normalize, dtype):
    logits, labels = sample()
    logits = logits.to(dtype)
    imae = build("imae", T=T, normalize=normalize)
    gr = build("gr", beta=T, lam=1, normalize=normalize)
    assert torch.equal(imae(logits, labels), gr(logits, labels))
    assert torch.equal(gradient(imae, logits, labels), gradient(gr, logits, labels))
    assert torch.equal(imae.potential(logits, labels), gr.potential(logits, labels))
    p = torch.linspace(0, 1, 101, dtype=dtype)
    torch.testing.assert_close(imae.weight(p), gr.weight(p))


@pytest.mark.parametrize(
    ("params", "name", "other"),
    [
        ({"beta": 2, "lam": 0}, "cce", {}),
        ({"beta": 4, "lam": 1}, "mae", {}),
        ({"beta": 2, "lam": 0.7}, "gce", {"q": 0.7}),
        ({"beta": 2, "lam": 0.3}, "gce", {"q": 0.3}),
    ],
)
def test_gr_with_the_identity_has_the_gradients_of_the_older_losses(params, name, other):
    logits, labels = sample()
    gr = build("gr", g="identity", normalize="none", **params)
    torch.testing.assert_close(
        gradient(gr, logits, labels), gradient(build(name, **other), logits, labels)
    )


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("gce", {"q": 1e-9}),
        ("js", {"pi": 1e-12}),
        ("forward", {"T": torch.eye(5)}),
        ("backward", {"T": torch.eye(5)}),
        ("focal", {"gamma": 0}),
        ("label_smoothing", {"eps": 0}),
        ("bootstrap_soft", {"beta": 1}),
        ("bootstrap_hard", {"beta": 1}),
        ("sce", {"alpha": 1, "beta": 0}),
    ],
)
def test_limits_that_are_cross_entropy(name, params):
    logits, labels = sample()
    loss, cce = build(name, **params), build("cce")
    torch.testing.assert_close(loss(logits, labels), cce(logits, labels), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(
        gradient(loss, logits, labels), gradient(cce, logits, labels), atol=1e-6, rtol=1e-6
    )


def test_nal_with_full_attention_is_cross_entropy():
    logits, labels = sample()
    attention = torch.full((40,), 60.0, dtype=torch.float64)

    def nal(logits, labels):
        return attention_loss(logits, labels, attention, lam=0.5)

    torch.testing.assert_close(nal(logits, labels), build("cce")(logits, labels))
    torch.testing.assert_close(
        gradient(nal, logits, labels), gradient(build("cce"), logits, labels)
    )


def test_gce_with_q_one_is_half_of_mae_and_rce_is_mae():
    logits, labels = sample()
    mae = build("mae")(logits, labels)
    torch.testing.assert_close(2 * build("gce", q=1)(logits, labels), mae)
    torch.testing.assert_close(build("sce", alpha=0, beta=1, A=-2)(logits, labels), mae)


def test_nal_with_a_hard_label_is_forward_correction_by_its_attention():
    """tau p + 1 - tau is symmetric noise seen from one label."""
    logits, labels = sample()
    tau = torch.tensor(0.7, dtype=torch.float64)
    p = torch.softmax(logits, 1).gather(1, labels[:, None]).squeeze(1)
    nal = attention_loss(logits, labels, torch.logit(tau).expand(40), lam=0)
    torch.testing.assert_close(nal, -torch.log(tau * p + 1 - tau))


def test_a_sum_reducer_makes_two_halves_of_a_batch_one():
    logits, labels = sample()
    loss = build("gr")
    whole = gradient(lambda z, y: loss(z, y) / 40, logits, labels)
    sums = []
    loss.weight_sum_reducer = lambda pair: sums.append(pair) or pair
    for half in (slice(0, 20), slice(20, 40)):
        loss(logits[half], labels[half])
    for reduced in (sums[0] + sums[1], (sums[0] + sums[1]) / 2):  # all-reduce by sum or by mean
        loss.weight_sum_reducer = lambda pair, reduced=reduced: reduced
        halves = [
            gradient(lambda z, y: loss(z, y) / 20, logits[half], labels[half]) / 2
            for half in (slice(0, 20), slice(20, 40))
        ]
        torch.testing.assert_close(torch.cat(halves), whole)


def test_dmi_shifts_by_a_constant_under_class_dependent_noise():
    """det(T^T U) = det(T) det(U): the loss of two models differs by the same amount."""
    generator = torch.Generator().manual_seed(5)
    labels = torch.arange(3).repeat(200)
    noisy = labels.clone()
    noisy[::4] = (labels[::4] + 1) % 3
    # 200 of every class in a fixed pattern: the noise is exactly class-dependent for models that
    # answer by class.
    answers = [torch.randn(3, 3, generator=generator).double()[labels] for _ in range(2)]
    dmi = build("dmi")
    clean = [dmi(logits, labels)[0] for logits in answers]
    corrupt = [dmi(logits, noisy)[0] for logits in answers]
    torch.testing.assert_close(corrupt[0] - clean[0], corrupt[1] - clean[1])
    assert corrupt[0] > clean[0]
