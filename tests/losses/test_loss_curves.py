"""Weight curves: focus, spread and the figure."""

import pytest
import torch

from labelclean.errors import ConfigError
from labelclean.losses import LOSSES, build
from labelclean.losses.curves import weight_figure

IMAE_VARIANCE = {
    0.5: "0.001604", 1: "0.007425", 2: "0.040043", 4: "0.298501", 6: "1.291682",
    8: "4.546085", 10: "14.43724", 12: "43.26601", 16: "354.1133", 20: "2723.774",
}  # fmt: skip
IMAE_MEAN = {
    0.5: "1.0877", 1: "1.1846", 2: "1.4107", 4: "2.0301", 6: "2.9729",
    8: "4.4197", 10: "6.6552", 12: "10.1300", 16: "24.0800", 20: "58.7289",
}  # fmt: skip
# beta, lambda: focus, largest weight, mean, variance, std/mean
GR = {
    (0.5, 0): ("0", "1.649", "1.297", "0.03492", "0.144"),
    (1, 0): ("0", "2.718", "1.718", "0.2420", "0.286"),
    (2, 0): ("0", "7.389", "3.195", "3.195", "0.559"),
    (4, 0.2): (".167", "10.27", "5.632", "10.01", "0.562"),
    (6, 0.3): (".231", "19.55", "10.10", "40.97", "0.634"),
    (6, 0.4): (".286", "13.42", "7.501", "17.66", "0.560"),
    (8, 0.5): (".333", "21.74", "11.41", "50.41", "0.622"),
    (12, 0.5): (".333", "101.4", "44.36", "1257.7", "0.799"),
    (16, 0.5): (".333", "472.7", "180.6", "28316", "0.932"),
    (8, 1): (".5", "7.389", "4.420", "4.546", "0.482"),
    (12, 1): (".5", "20.09", "10.13", "43.27", "0.649"),
    (16, 1): (".5", "54.60", "24.08", "354.1", "0.781"),
    (12, 2): (".667", "5.917", "3.221", "2.978", "0.536"),
    (20, 2): (".667", "19.36", "8.150", "41.74", "0.793"),
    (24, 2): (".667", "35.01", "13.35", "142.7", "0.895"),
}
P = torch.linspace(0, 1, 200_001, dtype=torch.float64)


def printed(value: float, text: str) -> bool:
    """Whether a value rounds to the printed digits."""
    decimals = len(text.partition(".")[2])
    return abs(value - float(text)) <= 0.5000001 * 10**-decimals


def mean_of(weight: torch.Tensor) -> float:
    return float(torch.trapezoid(weight, P))


@pytest.mark.parametrize("T", list(IMAE_VARIANCE))
def test_imae_reproduces_the_variance_table(T):
    loss = build("imae", T=T)
    assert printed(loss.spread(), IMAE_VARIANCE[T])
    assert printed(mean_of(loss.weight(P)), IMAE_MEAN[T])


@pytest.mark.parametrize(("beta", "lam"), list(GR))
def test_gr_reproduces_the_spread_table(beta, lam):
    loss = build("gr", beta=beta, lam=lam)
    focus, largest, mean, variance, relative = GR[beta, lam]
    weight = loss.weight(P)
    assert printed(loss.focus(), focus)
    assert printed(float(weight.max()), largest)
    assert printed(mean_of(weight), mean)
    assert printed(loss.spread(), variance)
    assert printed(loss.spread() ** 0.5 / mean_of(weight), relative)


@pytest.mark.parametrize("lam", [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1, 2])
@pytest.mark.parametrize("g", ["exp", "identity"])
def test_the_focus_of_gr_is_lambda_by_one_plus_lambda(lam, g):
    loss = build("gr", beta=6, lam=lam, g=g)
    by_grid = float(P[loss.weight(P).argmax()])
    assert by_grid == pytest.approx(lam / (1 + lam), abs=5e-6)
    assert loss.focus() == pytest.approx(lam / (1 + lam), abs=5e-6)


@pytest.mark.parametrize(
    ("name", "params", "focus"),
    [
        ("cce", {}, 0), ("mae", {}, 0.5), ("gce", {"q": 0.7}, 0.7 / 1.7), ("imae", {}, 0.5),
        ("sce", {}, 3.9 / 8), ("sce", {"alpha": 6, "beta": 0.1}, 0), ("nal", {}, 1 / 1.5),
        ("focal", {"gamma": 0.5}, 0.0177), ("focal", {}, 0.0578), ("js", {"pi": 0.1}, 0.174),
        ("js", {"pi": 0.3}, 0.264), ("js", {}, 0.318), ("js", {"pi": 0.9}, 0.410),
    ],
)  # fmt: skip
def test_the_focus_of_the_other_losses(name, params, focus):
    assert build(name, **params).focus() == pytest.approx(focus, abs=6e-4)


@pytest.mark.parametrize(
    ("name", "spread"), [("cce", 1 / 3), ("mae", 4 / 45), ("gce", 0.03296), ("focal", 0.6586)]
)
def test_the_spread_of_the_other_losses(name, spread):
    assert build(name).spread() == pytest.approx(spread, abs=5e-6 if spread < 0.6 else 5e-5)


def test_a_flat_curve_has_no_focus():
    loss = build("gr", beta=0)
    assert loss.focus() is None
    assert loss.spread() == pytest.approx(0, abs=1e-12)


# NAL's curve is that of the best attention, tested below.
@pytest.mark.parametrize("name", [name for name in LOSSES if name != "nal"])
def test_the_weight_is_the_l1_norm_of_the_logit_gradient(name, make_loss):
    loss = make_loss(name, classes=4, samples=64)
    if loss.weight(P) is None:
        assert loss.focus() is None
        assert loss.spread() is None
        return
    if name in ("imae", "gr"):
        loss.normalize = "none"
    generator = torch.Generator().manual_seed(3)
    logits = 2 * torch.randn(64, 4, generator=generator, dtype=torch.float64)
    logits.requires_grad_()
    labels = torch.randint(4, (64,), generator=generator)
    if name == "gce_truncated":
        loss.receive_probabilities(torch.softmax(logits.detach(), 1), labels)
    values = loss(logits, labels, index=torch.arange(64))
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    p = torch.softmax(logits.detach(), 1).gather(1, labels[:, None]).squeeze(1)
    torch.testing.assert_close(loss.weight(p), gradient.abs().sum(1), atol=1e-10, rtol=1e-9)


def test_the_weight_of_nal_is_that_of_the_best_attention(make_loss):
    loss = make_loss("nal", classes=3, samples=9, lam=0.5)
    p = torch.arange(0.05, 0.95, 0.1, dtype=torch.float64)
    best = 0.5 / (1.5 * (1 - p))
    attention = torch.logit(best.clamp(max=1 - 1e-12))
    logits = torch.stack((p.log(), ((1 - p) / 2).log(), ((1 - p) / 2).log()), 1).requires_grad_()
    values = loss(logits, torch.zeros(9, dtype=torch.long), torch.arange(9), attention)
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    torch.testing.assert_close(loss.weight(p), gradient.abs().sum(1), atol=1e-9, rtol=1e-8)


def test_the_figure_draws_the_loss_beside_its_companions(tmp_path):
    figure = weight_figure("gr", build("gr"), "beta=8")
    labels = [line.get_label() for line in figure.axes[0].get_lines()]
    assert labels == ["cce", "mae", "gce", "gr (beta=8)", "focus 0.333"]
    figure.savefig(tmp_path / "gr.png")
    assert (tmp_path / "gr.png").read_bytes()[:4] == b"\x89PNG"


def test_a_loss_without_a_curve_cannot_be_drawn():
    with pytest.raises(ConfigError, match=r"'mse' has no weight curve.*Losses with one: cce"):
        weight_figure("mse", build("mse"))
