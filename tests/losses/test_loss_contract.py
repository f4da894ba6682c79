"""What every loss of the catalogue promises."""

import pytest
import torch

from labelclean.losses import LOSSES, build
from labelclean.records.recorder import RECORDED_SIGNALS

PER_SAMPLE = [name for name in LOSSES if name != "dmi"]
SMOOTH = [name for name in LOSSES if name not in ("imae", "gr", "elr")]
BATCH = 16


def batch_of(classes: int, size: int = BATCH, dtype: torch.dtype = torch.float32):
    """Logits, labels (every class, if there is room), sample ids, attention logits."""
    generator = torch.Generator().manual_seed(classes)
    logits = 3 * torch.randn(size, classes, generator=generator, dtype=torch.float64)
    labels = torch.randperm(max(size, classes), generator=generator)[:size] % classes
    attention = torch.randn(size, generator=generator, dtype=torch.float64)
    return logits.to(dtype), labels, torch.arange(size), attention.to(dtype)


def run(loss, logits, labels, index, attention):
    """Give values and the gradient of their sum."""
    logits = logits.clone().requires_grad_()
    values = loss(logits, labels, index=index, attention=attention)
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    return values.detach(), gradient


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize(
    ("given", "answered"),
    [
        (torch.float64, torch.float64),
        (torch.float32, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
    ],
)
def test_one_value_a_sample_in_float32_or_better(name, epoch, given, answered, make_loss):
    loss = make_loss(name)
    loss.start_epoch(epoch)
    values, gradient = run(loss, *batch_of(5, dtype=given))
    assert values.shape == (BATCH,)
    assert values.dtype == answered
    assert gradient.dtype == given
    assert torch.isfinite(values).all()
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", list(LOSSES))
def test_autocast_does_not_lower_the_precision(name, make_loss):
    arguments = batch_of(5)
    expected = make_loss(name)(*arguments)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(make_loss(name)(*arguments), expected, atol=0, rtol=0)


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("kind", ["right", "wrong", "equal", "random"])
def test_extreme_logits_give_finite_values_and_gradients(name, epoch, classes, kind, make_loss):
    _, labels, index, attention = batch_of(classes)
    columns = torch.arange(classes).expand(BATCH, classes)
    winner = labels if kind == "right" else (labels + 1) % classes
    logits = torch.where(columns == winner[:, None], 80.0, -80.0)
    if kind == "equal":
        logits = torch.full((BATCH, classes), 7.0)
    if kind == "random":
        generator = torch.Generator().manual_seed(1)
        logits = 160 * torch.rand(BATCH, classes, generator=generator) - 80
    for scale in (1, 80):
        loss = make_loss(name, classes=classes)
        loss.start_epoch(epoch)
        for _ in range(3):
            values, gradient = run(loss, logits, labels, index, scale * attention.sign())
            assert torch.isfinite(values).all()
            assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", PER_SAMPLE)
def test_a_thousand_classes(name, make_loss):
    """Large enough to be worked in blocks; blocks must not be seen in the answer."""
    size = 300
    arguments = batch_of(1000, size=size)
    loss = make_loss(name, classes=1000, samples=size)
    loss.start_epoch(3)
    values, gradient = run(loss, *arguments)
    assert torch.isfinite(values).all()
    assert gradient.sum(1).abs().max() < 1e-3 * max(1, float(gradient.abs().max()))
    if name in ("imae", "gr"):
        return  # scaled by the whole batch
    loss = make_loss(name, classes=1000, samples=size)
    loss.start_epoch(3)
    alone, slope = run(loss, *(argument[150:160] for argument in arguments))
    torch.testing.assert_close(alone, values[150:160])
    torch.testing.assert_close(slope, gradient[150:160])


@pytest.mark.parametrize("name", PER_SAMPLE)
def test_a_batch_of_one(name, make_loss):
    values, gradient = run(make_loss(name), *batch_of(5, size=1))
    assert values.shape == (1,)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize("epoch", [0, 3])
def test_permuting_the_batch_permutes_the_answer(name, epoch, make_loss):
    arguments = batch_of(5, dtype=torch.float64)
    order = torch.randperm(BATCH, generator=torch.Generator().manual_seed(2))
    answers = []
    for each in (arguments, tuple(argument[order] for argument in arguments)):
        loss = make_loss(name)
        loss.start_epoch(epoch)
        answers.append(run(loss, *each))
    torch.testing.assert_close(answers[0][0][order], answers[1][0])
    torch.testing.assert_close(answers[0][1][order], answers[1][1])


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize("epoch", [0, 3])
def test_gradient_rows_sum_to_zero(name, epoch, make_loss):
    loss = make_loss(name)
    loss.start_epoch(epoch)
    _, gradient = run(loss, *batch_of(5, dtype=torch.float64))
    assert gradient.sum(1).abs().max() < 1e-12 * max(1, float(gradient.abs().max()))


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("classes", [2, 4])
def test_the_gradient_is_that_of_the_value(name, classes, make_loss):
    """Losses with memory: below. imae and gr are defined by their gradient."""
    logits, labels, index, attention = batch_of(classes, size=8, dtype=torch.float64)
    loss = make_loss(name, classes=classes, samples=8).double()
    logits.requires_grad_()
    attention.requires_grad_()
    sources = (logits, attention, *loss.parameters())

    def value(logits, attention, *_):
        return loss(logits, labels, index=index, attention=attention)

    if name == "dmi":
        assert torch.autograd.gradcheck(lambda logits: value(logits, attention)[0], (logits,))
    else:
        assert torch.autograd.gradcheck(value, sources)


@pytest.mark.parametrize("name", ["nal", "elr", "selc", "gce_truncated"])
def test_the_gradient_is_that_of_the_value_while_the_memory_is_frozen(name, make_loss):
    logits, labels, index, attention = batch_of(4, size=8, dtype=torch.float64)
    loss = make_loss(name, classes=4, samples=8)
    loss.start_epoch(3)
    loss(logits + 1.0, labels, index=index, attention=attention)
    if name == "gce_truncated":
        loss.receive_probabilities(torch.softmax(logits, 1), labels)
    loss.eval()
    logits.requires_grad_()
    attention.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *sources: loss(sources[0], labels, index=index, attention=sources[1]),
        (logits, attention),
    )


@pytest.mark.parametrize("name", [name for name in PER_SAMPLE if build(name).soft_targets])
@pytest.mark.parametrize("epoch", [0, 3])
def test_a_hard_label_equals_its_one_hot_target(name, epoch, make_loss):
    logits, labels, index, attention = batch_of(5, dtype=torch.float64)
    soft = torch.nn.functional.one_hot(labels, 5).double()
    answers = []
    for given in (labels, soft):
        loss = make_loss(name)
        loss.start_epoch(epoch)
        answers.append(run(loss, logits, given, index, attention))
    torch.testing.assert_close(answers[0], answers[1])


@pytest.mark.parametrize("name", list(LOSSES))
def test_state_survives_a_round_trip(name, make_loss):
    arguments = batch_of(5)
    loss = make_loss(name)
    loss.start_epoch(3)
    loss(*arguments)
    if loss.wants_probabilities(4):
        loss.receive_probabilities(torch.softmax(arguments[0], 1), arguments[1])
    copy = make_loss(name)
    copy.load_state_dict(loss.state_dict())
    copy.start_epoch(3)
    assert torch.equal(loss(*arguments), copy(*arguments))
    for key, value in loss.state_dict().items():
        assert torch.equal(value, copy.state_dict()[key])


@pytest.mark.parametrize("name", list(LOSSES))
def test_compiled_and_eager_agree(name, make_loss):
    arguments = batch_of(5)
    expected, slope = run(make_loss(name), *arguments)
    compiled = torch.compile(make_loss(name), backend="aot_eager")
    values, gradient = run(compiled, *arguments)
    torch.testing.assert_close(values, expected)
    torch.testing.assert_close(gradient, slope)


@pytest.mark.parametrize("name", list(LOSSES))
def test_every_loss_describes_itself(name):
    loss = build(name)
    assert loss.paper.split(", ")[-1].isdigit()
    assert loss.formula
    assert loss.signals[0] == "p_given"
    assert set(loss.signals) <= set(RECORDED_SIGNALS)
    assert loss.warmup_loss is None or loss.warmup_loss in LOSSES
    assert (loss.warmup_fraction > 0) == (loss.warmup_loss is not None)
    assert loss.per_sample == (name != "dmi")
