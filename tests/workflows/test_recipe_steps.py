"""Every shipped recipe trains: one real step of its own network, loss, optimiser and schedule."""

import numpy as np
import pytest

from labelclean.data.read import read_manifest
from labelclean.recipe import load_recipe, recipe_names
from labelclean.training.runtime import start_runtime
from labelclean.workflows.observe import observe

ROWS = 8
# Least input of networks that cannot look at 32 pixels.
SIZES = dict.fromkeys(
    ("nal-webvision-inceptionresnetv2", "dividemix-webvision", "elr-plus-webvision"), 75
)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    path = tmp_path_factory.mktemp("steps") / "tiny.npz"
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (ROWS, 32, 32, 3), dtype=np.uint8)
    np.savez(path, X=pixels, y=np.arange(ROWS) % 2)
    return read_manifest(path)


# So few rows have few neighbours, and fill few chunks.
FEWER = dict.fromkeys(("d2l-cifar10", "d2l-cifar100"), ("strategy.neighbours=3",)) | {
    "bilevel-cifar10": ("strategy.chunks=2",)
}

# Hundreds of megabytes of weights: seconds to draw and to hash, minutes on a busy machine.
LARGE = ("nal-animal10n-vgg19", *SIZES)
# Two networks each; one of every kind is enough for every day.
TWICE = {
    name
    for name in recipe_names()
    if name.startswith(("dividemix-", "elr-plus-", "co-teaching-"))
    and name not in ("dividemix-cifar10-noise50", "elr-plus-cifar10", "co-teaching-cifar10-noise50")
}
NAMES = [
    pytest.param(name, marks=pytest.mark.slow) if name in {*LARGE, *TWICE} else name
    for name in recipe_names()
]


@pytest.mark.parametrize("name", NAMES)
def test_one_step(name, manifest, tmp_path):
    recipe = load_recipe(
        name,
        [
            "training.epochs=1", f"training.batch_size={ROWS}", "data.workers=0",
            f"model.image_size={SIZES.get(name, 32)}", "model.pretrained=false",
            *FEWER.get(name, ()),
        ],
    )  # fmt: skip
    seen = observe(manifest, recipe, start_runtime("cpu", threads=1))
    records = seen.fitted.records
    assert records.probs.shape == (ROWS, 2)
    assert np.allclose(records.probs.sum(axis=1), 1, atol=1e-5)
    assert seen.fitted.epochs == 1
    assert (records.attention is not None) == (recipe.loss.name == "nal")
    assert seen.recipe.model.backbone == load_recipe(name).model.backbone


PUBLISHED = {
    "imae-cifar10-resnet20-clean": {"T": 0.5},
    "imae-cifar10-resnet56-noisy": {"T": 8.0},
    "gr-cifar10-resnet20-clean": {"beta": 2.0, "lam": 0.0},
    "gr-cifar10-resnet56-noise20": {"beta": 12.0, "lam": 0.5},
    "gr-cifar10-resnet56-noise40": {"beta": 16.0, "lam": 1.0},
    "gr-cifar10-resnet56-noise60": {"beta": 12.0, "lam": 2.0},
    "gr-cifar100-resnet44-noise20": {"beta": 6.0, "lam": 0.3},
    "gr-cifar100-resnet44-noise40": {"beta": 6.0, "lam": 0.4},
    "gr-cifar100-resnet44-noise60": {"beta": 8.0, "lam": 0.5},
    "gr-clothing1m": {"beta": 16.0, "lam": 1.0},
    "nal-cifar10-resnet34": {"lam": 0.5, "alpha": 0.9, "start": 59, "every": 10},
    "nal-cifar100-resnet34": {"lam": 10.0, "alpha": 0.9, "start": 59, "every": 10},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_losses_have_the_published_parameters(name):
    of_the_layer = {"eps": 1e-6} if name.startswith(("imae-", "gr-")) else {}
    assert load_recipe(name).loss.params == PUBLISHED[name] | of_the_layer


STRATEGIES = {
    "self-paced-cifar10": {"share": 0.7, "decay": 0.5},
    "mentornet-pd-cifar10-noise40": {"share": 0.75, "decay": 0.5},
    "co-teaching-cifar10-noise50": {"forget": 0.5, "ramp": 10},
    "joint-cifar10-noise70": {"alpha": 1.2, "beta": 0.8, "begin": 70, "ring": 10, "anew": 0.625},
    "dividemix-cifar10-asymmetric40": {
        "lambda_u": 0.0, "warmup": 10, "temperature": 0.5, "alpha": 4.0, "confidence": 1.0,
    },
    "elr-plus-cifar100": {"beta": 0.9, "lam": 7.0, "rising": True, "ramp": 0.4},
}  # fmt: skip


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_have_the_published_parameters(name):
    assert load_recipe(name).strategy.params == STRATEGIES[name]


@pytest.mark.parametrize("name", [n for n in recipe_names() if n.startswith(("imae-", "gr-"))])
def test_rescaled_losses_let_go_of_fitted_samples_as_the_authors_layer_does(name):
    assert load_recipe(name).loss.params["eps"] == 1e-6


@pytest.mark.parametrize(
    ("name", "images", "cuts", "total"),
    [
        ("imae-cifar10-resnet20-noisy", 50_000, (32_000, 48_000), 100_000),
        ("gr-cifar10-resnet56-noise40", 50_000, (5_000, 10_000, 15_000), 20_000),
        ("imae-clothing1m", 1_000_000, (10_000, 15_000), 35_700),
    ],
)
def test_rates_are_cut_at_the_published_iterations(name, images, cuts, total):
    training = load_recipe(name).training
    steps = -(-images // training.batch_size) * training.epochs
    assert steps == pytest.approx(total, rel=0.01)
    assert [share * steps for share in training.milestones] == pytest.approx(cuts, rel=0.01)
