"""Bad input: every error names the value and what is allowed."""

import pytest
import torch

from labelclean.errors import ConfigError, DataError
from labelclean.losses import LOSSES, build

LOGITS = torch.zeros(2, 3)
LABELS = torch.tensor([0, 2])


def call(name, make_loss, **changes):
    arguments = {
        "logits": LOGITS,
        "labels": LABELS,
        "index": torch.tensor([0, 1]),
        "attention": torch.zeros(2),
    } | changes
    return make_loss(name, classes=3)(**arguments)


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": torch.tensor([0, 3])}, r"label 3 is out of range; allowed: 0 to 2"),
        ({"labels": torch.tensor([-1, 0])}, r"label -1 is out of range; allowed: 0 to 2"),
        ({"labels": torch.tensor([0])}, r"labels have shape \(1,\); give \(2,\)"),
        ({"labels": torch.tensor([0.0, 1.0])}, r"labels have dtype torch.float32; give int64"),
        ({"logits": torch.tensor([[0, 1, 2.0], [0, float("nan"), 1]])}, r"NaN values in rows 1"),
        ({"logits": torch.tensor([[0, 1, 2.0], [0, -torch.inf, 1]])}, r"infinite values in rows 1"),
        ({"logits": torch.zeros(3)}, r"logits have shape \(3,\); give \(B, C\)"),
        ({"logits": torch.zeros(2, 1)}, r"logits have shape \(2, 1\).*C >= 2"),
        ({"logits": torch.zeros(0, 3)}, r"logits have shape \(0, 3\).*B >= 1"),
        ({"logits": torch.zeros(2, 3).long()}, r"logits have dtype torch.int64"),
    ],
)
def test_bad_batches_are_refused(name, changes, message, make_loss):
    with pytest.raises(DataError, match=message):
        call(name, make_loss, **changes)


def test_large_logits_whose_sum_overflows_are_no_fault():
    logits = torch.full((4, 3), 3e38)
    assert torch.isfinite(build("cce")(logits, torch.tensor([0, 1, 2, 0]))).all()


@pytest.mark.parametrize("name", [n for n in LOSSES if build(n).memory_shape.startswith("N")])
@pytest.mark.parametrize(
    ("index", "message"),
    [
        (None, r"needs index: \(2,\) int64 sample ids, 0 to 15"),
        (torch.tensor([0, 16]), "sample id 16 is out of range; allowed: 0 to 15"),
        (torch.tensor([-1, 0]), "sample id -1 is out of range; allowed: 0 to 15"),
        (torch.tensor([0]), r"index has shape \(1,\)"),
        (torch.tensor([0.0, 1.0]), r"dtype torch.float32; give \(2,\) int64"),
    ],
)
def test_losses_with_memory_need_sample_ids(name, index, message, make_loss):
    with pytest.raises(DataError, match=message):
        call(name, make_loss, index=index)


@pytest.mark.parametrize("name", [n for n in LOSSES if build(n).memory_shape.startswith("N")])
def test_losses_with_memory_need_bind(name):
    with pytest.raises(ConfigError, match=r"call bind\(num_samples, num_classes\) first"):
        build(name)(LOGITS, LABELS, index=torch.tensor([0, 1]), attention=torch.zeros(2))


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        (None, r"needs attention: \(2,\) logits"),
        (torch.zeros(2, 1), r"attention has shape \(2, 1\).*give \(2,\)"),
        (torch.tensor([0.0, torch.nan]), "attention holds NaN"),
    ],
)
def test_nal_needs_attention(attention, message, make_loss):
    with pytest.raises(DataError, match=message):
        call("nal", make_loss, attention=attention)


@pytest.mark.parametrize("name", list(LOSSES))
def test_soft_targets_are_checked_or_refused(name, make_loss):
    soft = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.2, 0.7]])
    message = "sum to 1" if build(name).soft_targets else "takes no soft targets"
    with pytest.raises(DataError, match=message):
        call(name, make_loss, labels=soft)
    with pytest.raises(DataError):
        call(name, make_loss, labels=torch.ones(2, 4) / 4)


def test_dmi_refuses_a_batch_that_lacks_a_class(make_loss):
    with pytest.raises(DataError, match=r"batch of 2 lacks 1 of 3 classes: 1\. Use larger"):
        call("dmi", make_loss)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("gce", {"q": 0}, r"q is 0, outside its range; allowed: 0 < q <= 1"),
        ("gce", {"q": 1.5}, r"q is 1.5, outside its range; allowed: 0 < q <= 1"),
        ("gce", {"q": "much"}, r"q is 'much'; give a finite number with 0 < q <= 1"),
        ("gce", {"q": float("nan")}, r"q is nan; give a finite number"),
        ("gce", {"q": True}, r"q is True; give a finite number"),
        ("gce_truncated", {"k": 1}, r"k is 1, .*0 < k < 1"),
        ("imae", {"T": -1}, r"T is -1, .*0 <= T <= 80"),
        ("imae", {"normalize": "sum"}, r"normalize is 'sum'; allowed: 'weights', 'none'"),
        ("gr", {"beta": 81}, r"beta is 81, .*-80 <= beta <= 80"),
        ("gr", {"lam": -0.5}, r"lam is -0.5, .*0 <= lam"),
        ("gr", {"g": "log"}, r"g is 'log'; allowed: 'exp', 'identity'"),
        ("gr", {"g": "identity", "beta": 0}, r"beta is 0; with g='identity'"),
        ("sce", {"A": 0}, r"A is 0, .*A < 0"),
        ("sce", {"alpha": 0, "beta": 0}, r"alpha and beta are both 0"),
        ("nce_rce", {"alpha": -1}, r"alpha is -1, .*0 <= alpha"),
        ("focal", {"gamma": -1}, r"gamma is -1, .*0 <= gamma"),
        ("js", {"pi": 1}, r"pi is 1, .*0 < pi < 1"),
        ("label_smoothing", {"eps": 2}, r"eps is 2, .*0 <= eps <= 1"),
        ("bootstrap_soft", {"beta": 1.1}, r"beta is 1.1, .*0 <= beta <= 1"),
        ("bootstrap_hard", {"beta": -0.1}, r"beta is -0.1, .*0 <= beta <= 1"),
        ("elr", {"beta": 1}, r"beta is 1, .*0 <= beta < 1"),
        ("selc", {"alpha": 1}, r"alpha is 1, .*0 <= alpha < 1"),
        ("selc", {"start": -1}, r"start is -1; give a whole number, 0 or larger"),
        ("nal", {"every": 0}, r"every is 0; give a whole number, 1 or larger"),
        ("nal", {"lam": 0}, r"lam is 0, .*0 < lam"),
        ("nal", {"lamda": 1}, r"no parameter 'lamda'\. Did you mean 'lam'\?"),
        ("forward", {"T": [[0.5, 0.4], [0, 1]]}, r"every row sums to 1.*from 1 0.1"),
        ("forward", {"T": [[1.5, -0.5], [0, 1]]}, r"entries of 0 or more.*Smallest entry -0.5"),
        ("forward", {"T": [[1, 0], [1, 0]]}, r"given labels 1; every column"),
        ("forward", {"T": [[1.0, 0.0]]}, r"T has shape \(1, 2\); give \(C, C\)"),
        ("forward", {"T": [["a"]]}, r"T is not a matrix of numbers"),
        ("forward", {"T": "anchors"}, r"unknown transition estimator.*Did you mean 'anchor'"),
        ("backward", {"T": [[0.5, 0.5], [0.5, 0.5]]}, r"condition number .*at most 1e\+06"),
        ("gcee", {}, r"unknown loss 'gcee'\. Did you mean 'gce'\?"),
    ],
)
def test_parameters_out_of_range_are_refused(name, params, message):
    with pytest.raises(ConfigError, match=message):
        build(name, **params)


@pytest.mark.parametrize("name", ["forward", "backward", "adaptation"])
def test_a_matrix_of_other_classes_is_refused(name):
    loss = build(name, T=[[0.9, 0.1], [0.2, 0.8]])
    with pytest.raises(ConfigError, match="T is for 2 classes, but the data has 3"):
        loss.bind(4, 3)
    with pytest.raises(DataError, match="logits have 3 classes, T has 2"):
        loss(LOGITS, LABELS)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 3), "num_samples is 0"),
        ((4, 1), "num_classes is 1"),
        ((4, 3, 0), "epochs is 0; give a whole number, 1 or larger"),
    ],
)
def test_sizes_are_checked(sizes, message):
    with pytest.raises(ConfigError, match=message):
        build("cce").bind(*sizes)


def test_epochs_are_checked():
    with pytest.raises(ConfigError, match="epoch is -1"):
        build("cce").start_epoch(-1)
