"""Values and gradients worked out by hand (numpy float64, checked by central differences)."""

import math

import pytest
import torch
from torch.nn import functional as F

from labelclean.losses import build
from labelclean.losses.attention import attention_loss
from labelclean.losses.determinant import determinant_loss
from labelclean.losses.early_learning import early_learning_loss
from labelclean.losses.margin import margin, soft_cross_entropy
from labelclean.losses.power import truncated_power_loss

Z = (2.0, 1.0, -0.5)
T = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
TARGET = (0.7, 0.2, 0.1)
LN = math.log(1e-4)
CCE1 = (-0.31032791, 0.25371618, 0.05661173)

# name, parameters, V1 (y=0): loss and gradient, V2 (y=2): loss and gradient
VECTORS = [
    ("cce", {}, 0.3715390319, CCE1, 2.8715390319, (0.68967209, 0.25371618, -0.94338827)),
    ("mae", {}, 0.6206558278, (-0.42804900, 0.34996194, 0.07808706),
     1.8867765355, (0.07808706, 0.02872663, -0.10681369)),
    ("mse", {}, 0.1638802032, (-0.22604720, 0.20305611, 0.02299109),
     1.4300009109, (0.28008886, -0.11817920, -0.16190966)),
    ("imae", {"T": 0.5}, -0.4496484328, (-0.55647394, 0.45495889, 0.10151505),
     1.5227676573, (0.37542166, 0.13810991, -0.51353158)),
    ("imae", {"T": 8}, -2.6798000759, (-2.77055820, 2.26513767, 0.50542053),
     5.6545439890, (0.56037218, 0.20614940, -0.76652158)),
    ("imae", {"T": 16}, -18.1145443150, (-15.35198552, 12.55139152, 2.80059400),
     28.2653340858, (0.85907473, 0.31603593, -1.17511066)),
    ("gr", {"beta": 2, "lam": 0}, -0.8989240649, (-0.93007379, 0.76040459, 0.16966920),
     6.8379331464, (2.41178628, 0.88724659, -3.29903287)),
    ("gr", {"beta": 8, "lam": 0.5}, -4.8463593773, (-3.92978431, 3.21289135, 0.71689296),
     21.7798617034, (2.20183413, 0.81000951, -3.01184363)),
    ("gr", {"beta": 12, "lam": 0.5}, -17.1897937128, (-11.01711975, 9.00731591, 2.00980384),
     89.5573145525, (5.40400581, 1.98802264, -7.39202844)),
    ("gr", {"beta": 6, "lam": 0.3}, -3.2137049556, (-2.64436373, 2.16196429, 0.48239944),
     22.7860572062, (3.99614206, 1.47009851, -5.46624057)),
    ("gr", {"beta": 12, "lam": 2}, -2.1830906545, (-2.93918843, 2.40300544, 0.53618299),
     2.6571395343, (0.37903474, 0.13943909, -0.51847383)),
    ("gce", {"q": 0.7}, 0.3271543305, (-0.23926033, 0.19561314, 0.04364719),
     1.2371738361, (0.09240110, 0.03399247, -0.12639357)),
    ("sce", {}, 1.2784655587, (-0.88713079, 0.72529549, 0.16183530),
     4.0607069742, (0.22514133, 0.08282487, -0.30796620)),
    ("sce", {"A": LN}, 2.8953796169, (-2.00227128, 1.63700589, 0.36526539),
     8.9760809522, (0.42857142, 0.15766262, -0.58623404)),
    ("sce", {"alpha": 6, "beta": 0.1}, 2.3533653567, (-1.94757728, 1.59228948, 0.35528781),
     17.6065894982, (4.15364993, 1.52804241, -5.68169234)),
    ("focal", {"gamma": 2}, 0.0357804773, (-0.07923923, 0.06478397, 0.01445526),
     2.5556163959, (0.82533134, 0.30362243, -1.12895378)),
    ("focal", {"gamma": 0.5}, 0.2069735583, (-0.24424657, 0.19968976, 0.04455681),
     2.7890735002, (0.72758091, 0.26766206, -0.99524296)),
    ("js", {"pi": 0.5}, 0.3516756653, (-0.27668249, 0.22620854, 0.05047395),
     1.6815285841, (0.16484962, 0.06064478, -0.22549440)),
    ("js", {"pi": 0.1}, 0.3676250651, (-0.30343146, 0.24807782, 0.05535364),
     2.4104278141, (0.40247571, 0.14806254, -0.55053824)),
    ("js", {"pi": 0.9}, 0.3317047773, (-0.24562873, 0.20081978, 0.04480895),
     1.2625326400, (0.08605426, 0.03165759, -0.11771185)),
    ("nce_mae", {"beta": 0}, 0.0805135126, (-0.08590055, 0.05914834, 0.02675221),
     0.6222702713, (0.00529948, 0.08718954, -0.09248902)),
    ("nce_rce", {}, 2.9387392264, (-2.05713905, 1.67078262, 0.38635643),
     9.3111973203, (0.36490369, 0.21948054, -0.58438423)),
    ("nce_mae", {}, 0.3908414265, (-0.29992505, 0.23412931, 0.06579574),
     1.5656585390, (0.04434301, 0.10155285, -0.14589586)),
    ("label_smoothing", {}, 0.4882056985, (-0.24366125, 0.22038285, 0.02327840),
     2.7382056985, (0.65633875, 0.22038285, -0.87672160)),
    ("bootstrap_soft", {}, 0.3913013075, (-0.30844101, 0.24870217, 0.05973884),
     2.7663013075, (0.64155899, 0.24870217, -0.89026116)),
    ("bootstrap_hard", {}, 0.3715390319, CCE1,
     2.3715390319, (0.48967209, 0.25371618, -0.74338827)),
    ("forward", {"T": T}, 0.7426130206, (-0.17990209, 0.14708336, 0.03281873),
     1.5021780836, (0.07014500, 0.02580490, -0.09594991)),
    ("backward", {"T": T}, -1.3784609681, (-1.31032791, 0.75371618, 0.55661173),
     4.8715390319, (1.18967209, 0.75371618, -1.94338827)),
]  # fmt: skip


@pytest.fixture(params=[(torch.float64, 1e-8, 1e-8), (torch.float32, 1e-7, 1e-5)], ids=["64", "32"])
def precision(request):
    """Number type, absolute and relative tolerance."""
    return request.param


def close(actual, expected, precision):
    dtype, atol, rtol = precision
    assert actual.dtype == dtype
    expected = torch.as_tensor(expected, dtype=dtype)
    torch.testing.assert_close(actual.detach(), expected, atol=atol, rtol=rtol)


@pytest.mark.parametrize(("name", "params", "v1", "g1", "v2", "g2"), VECTORS)
def test_values_and_gradients_match_the_hand_computed_vectors(
    name, params, v1, g1, v2, g2, precision
):
    rescaled = name in ("imae", "gr")
    loss = build(name, **params, **({"normalize": "none"} if rescaled else {}))
    logits = torch.tensor([Z, Z], dtype=precision[0], requires_grad=True)
    labels = torch.tensor([0, 2])
    values = loss.potential(logits, labels) if rescaled else loss(logits, labels)
    (gradient,) = torch.autograd.grad(loss(logits, labels).sum(), logits)
    close(values, (v1, v2), precision)
    close(gradient, (g1, g2), precision)


def test_the_margin_is_the_log_odds_of_the_given_label(precision):
    odds = margin(torch.tensor([Z, Z], dtype=precision[0]), torch.tensor([0, 2]))
    close(odds, (0.7985867220, -2.8132616875), precision)


def test_truncated_gce_is_gce_inside_and_constant_outside_the_gate(precision):
    logits = torch.tensor([Z, Z], dtype=precision[0], requires_grad=True)
    log_p = F.logsigmoid(margin(logits, torch.tensor([0, 2])))
    values = truncated_power_loss(log_p, log_p.exp() > 0.5, q=0.7, k=0.5)
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    close(values, (0.3271543305, 0.5491825619), precision)
    close(gradient, ((-0.23926033, 0.19561314, 0.04364719), (0, 0, 0)), precision)


def test_elr_and_selc_with_a_given_target(precision):
    logits = torch.tensor([Z, Z], dtype=precision[0], requires_grad=True)
    targets = torch.tensor([TARGET, TARGET], dtype=precision[0])
    values = early_learning_loss(logits, torch.tensor([0, 2]), targets, lam=3)
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    close(values, (-1.9526708736, 0.5473291264), precision)
    rows = ((-1.03240184, 0.81393402, 0.21846782), (-0.03240184, 0.81393402, -0.78153218))
    close(gradient, rows, precision)

    values = soft_cross_entropy(logits, targets)
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    close(values, (0.8215390319,) * 2, precision)
    close(gradient, ((-0.01032791, 0.05371618, -0.04338827),) * 2, precision)


Q = (0.1, 0.2, 0.7)
ATTENTION = [
    (0, 0, 0.5, 0.5151862926, (-0.1266662931, 0.1035591283, 0.0231071649), -0.1581691896),
    (2, 0, 0.5, 0.9846534614, (0.0369516354, 0.0135937470, -0.0505453824), 0.1964214427),
    (0, 2, 0.5, 0.3827549767, (-0.2594213188, 0.2120962488, 0.0473250700), -0.0147630808),
    (2, 2, 0.5, 1.8409279227, (0.2034078591, 0.0748295695, -0.2782374286), 0.5262614545),
    (2, 0, 10, 7.5695516767, (0.0369516354, 0.0135937470, -0.0505453824), -4.5535785573),
    (Q, 0, 0.5, 1.4166247486, (0.0861515766, -0.0480164568, -0.0381351198), -0.0015515647),
    (Q, 2, 0.5, 1.8013657514, (0.2747844131, -0.0435528399, -0.2312315731), 0.2805620713),
]


@pytest.mark.parametrize("through_module", [True, False])
@pytest.mark.parametrize(("target", "c", "lam", "value", "row", "slope"), ATTENTION)
def test_nal_matches_its_table(target, c, lam, value, row, slope, precision, through_module):
    logits = torch.tensor([Z], dtype=precision[0], requires_grad=True)
    attention = torch.tensor([float(c)], dtype=precision[0], requires_grad=True)
    hard = isinstance(target, int)
    targets = torch.tensor([target], dtype=torch.int64 if hard else precision[0])
    if through_module:
        loss = build("nal", lam=lam)
        loss.bind(1, 3)
        values = loss(logits, targets, index=torch.tensor([0]), attention=attention)
    else:
        values = attention_loss(logits, targets, attention, lam)
    gradients = torch.autograd.grad(values.sum(), (logits, attention))
    close(values, (value,), precision)
    close(gradients[0], (row,), precision)
    close(gradients[1], (slope,), precision)


def test_gr_normalises_a_batch_by_the_sum_of_its_weights(precision):
    logits = torch.tensor([Z, Z, (0, 0, 0)], dtype=precision[0], requires_grad=True)
    labels = torch.tensor([0, 2, 1])
    loss = build("gr", beta=8, lam=0.5)
    p = torch.softmax(logits, 1).gather(1, labels[:, None]).squeeze(1)
    weight = loss.weight(p)
    close(weight, (7.8595686278, 6.0236872695, 21.7410338482), precision)
    close(weight.var(correction=0), 49.2333911669, precision)
    (gradient,) = torch.autograd.grad(loss(logits, labels).mean(), logits)
    rows = (
        (-0.1103119344, 0.0901882220, 0.0201237124),
        (0.0618071025, 0.0227375623, -0.0845446648),
        (0.1525717004, -0.3051434008, 0.1525717004),
    )
    close(gradient, rows, precision)
    close(gradient.abs().sum(), 1.0, precision)


def test_dmi_of_a_batch(precision):
    logits = torch.tensor(
        [(2, 0), (1, -1), (0, 1), (-1, 0.5)], dtype=precision[0], requires_grad=True
    )
    labels = torch.tensor([0, 0, 1, 0])
    values = build("dmi")(logits, labels)
    close(values, (2.6440236527,) * 4, precision)
    (gradient,) = torch.autograd.grad(values.mean(), logits)
    first = torch.tensor(
        [-0.0923267751, -0.0923267751, 0.5186758508, -0.1311528784], dtype=precision[0]
    )
    close(gradient, torch.stack((first, -first), 1), precision)
    close(determinant_loss(logits, labels), 2.6440236527, precision)


def test_extreme_logits_of_a_hopeless_sample(precision):
    """E1: z = (30, -30, 0), y = 1, log-odds -60."""
    logits = torch.tensor([(30.0, -30.0, 0.0)], dtype=precision[0], requires_grad=True)
    label = torch.tensor([1])
    close(margin(logits, label), (-60.0,), precision)
    close(build("cce")(logits, label), (60.0,), precision)
    close(build("gce")(logits, label), (1.4285714286,), precision)
    mae = build("mae")(logits, label)
    close(mae, (2.0,), precision)
    (gradient,) = torch.autograd.grad(mae.sum(), logits)
    assert gradient.abs().max() < 2e-26
    imae = build("imae", normalize="none")(logits, label)
    (gradient,) = torch.autograd.grad(imae.sum(), logits)
    close(gradient, ((0.5, -0.5, 4.7e-14),), precision)
    attention = torch.tensor([3.0], dtype=precision[0], requires_grad=True)
    nal = attention_loss(logits, label, attention, 0.5)
    close(nal, (3.0728810274,), precision)
    (slope,) = torch.autograd.grad(nal.sum(), attention)
    close(slope, (0.9288611902,), precision)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", ["imae", "gr"])
def test_extreme_logits_of_a_perfect_sample(name, dtype):
    """E2: z = (40, 0, 0), y = 0: the released code gives a gradient of 0 in float32."""
    logits = torch.tensor([(40.0, 0.0, 0.0)], dtype=dtype, requires_grad=True)
    label = torch.tensor([0])
    close(margin(logits, label), (39.3068528194,), (dtype, 1e-8, 1e-6))
    values = build(name, normalize="none")(logits, label)
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    assert gradient.tolist() == [[-0.5, 0.25, 0.25]]
    (gradient,) = torch.autograd.grad(build("cce")(logits, label).sum(), logits)
    assert gradient[0, 1:].tolist() == pytest.approx([4.2e-18] * 2, rel=0.02)


@pytest.mark.parametrize("name", ["imae", "gr"])
def test_eps_lets_go_of_fitted_samples_as_the_authors_layer_does(name):
    logits = torch.zeros(4, 3, dtype=torch.float64)
    logits[:, 0] = torch.tensor([-30.0, 2.0, 12.0, 40.0])
    logits.requires_grad_()
    label = torch.zeros(4, dtype=torch.int64)
    loss = build(name, normalize="none", eps=1e-6)
    (slopes,) = torch.autograd.grad(loss(logits, label).sum(), logits)
    p = torch.softmax(logits.detach(), dim=1)
    one_hot = torch.nn.functional.one_hot(label, 3)
    plain = build(name, normalize="none").weight(p[:, 0])
    theirs = plain.unsqueeze(1) * (p - one_hot) / (2 - 2 * p[:, :1] + 1e-6)
    torch.testing.assert_close(slopes, theirs, rtol=1e-6, atol=1e-9)
    assert slopes[2, 0].item() == pytest.approx(-0.4806, abs=2e-4)
    assert slopes[3].abs().max() < 1e-9
    assert slopes[0, 0].item() == pytest.approx(-0.5, rel=1e-5)
    torch.testing.assert_close(slopes.abs().sum(dim=1), loss.weight(p[:, 0]), rtol=1e-6, atol=1e-9)
    values = loss.potential(logits, label)
    (given,) = torch.autograd.grad(values.sum(), logits)
    torch.testing.assert_close(given[1:3], slopes[1:3], rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("eps", [1e-6, 1e-40])
@pytest.mark.parametrize("name", ["imae", "gr"])
def test_what_eps_lets_go_of_stays_in_the_sum_of_the_weights(name, eps):
    logits = torch.tensor([[120.0, 0, 0], [0.5, 0, 0]], requires_grad=True)
    label = torch.zeros(2, dtype=torch.int64)
    (slopes,) = torch.autograd.grad(build(name, eps=eps)(logits, label).mean(), logits)
    p = torch.softmax(logits.detach(), dim=1)
    weight = build(name).weight(p[:, 0])
    assert torch.isfinite(slopes).all()
    assert slopes[0].abs().max() == 0
    assert slopes[1, 0].item() == pytest.approx(-0.5 * (weight[1] / weight.sum()).item(), rel=1e-5)
