"""Instance-dependent and open-set noise."""

import numpy as np
import pytest

from labelclean.benchmark.instance_noise import INSTANCE_VARIANTS, truncated_normal
from labelclean.benchmark.noise import inject
from labelclean.errors import ConfigError, DataError

N, C, S = 12_000, 5, 8


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


CLEAN = rng(1).integers(0, C, N)
FEATURES = rng(2).normal(size=(N, S))
# A model that usually, but not always, prefers the label.
SCORES = rng(3).gumbel(size=(N, C)) + 3.0 * np.eye(C)[CLEAN]
PROBS = np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True)


def run(variant: str, rate: float, seed: int = 0, **extra: object) -> np.ndarray:
    return inject(
        "instance", CLEAN, C, rate, rng(seed),
        variant=variant, features=FEATURES, probs=PROBS, **extra,
    )  # fmt: skip


@pytest.mark.parametrize("variant", INSTANCE_VARIANTS)
@pytest.mark.parametrize("rate", [0.3, 0.5, 1.0])
def test_rate_is_met(variant: str, rate: float) -> None:
    out = run(variant, rate)
    # Truncation at 1 lowers the mean of N(1, 0.1^2) by 0.1 sqrt(2 / pi).
    expected = (
        1 - 0.1 * np.sqrt(2 / np.pi) if rate == 1 and variant in ("parts", "single") else rate
    )
    assert out.actual_rate == pytest.approx(expected, abs=5 * np.sqrt(0.25 / N))


@pytest.mark.parametrize("variant", INSTANCE_VARIANTS)
def test_rate_zero_flips_nothing(variant: str) -> None:
    assert not run(variant, 0.0).flipped.any()


def test_truncated_normal_stays_inside_and_has_its_mean() -> None:
    values = truncated_normal(0.0, 100_000, rng())
    assert values.min() >= 0.0
    assert values.max() <= 1.0
    assert values.mean() == pytest.approx(0.1 * np.sqrt(2 / np.pi), rel=0.02)


@pytest.mark.parametrize(("variant", "views"), [("parts", C), ("single", 1)])
def test_flips_follow_the_random_view_of_the_features(variant: str, views: int) -> None:
    """The stream is replayed up to W, and the flipped labels fit its softmax."""
    out = run(variant, 0.4, seed=9)
    stream = rng(9)
    truncated_normal(0.4, N, stream)
    stream.random(N)
    stream.random(N)
    W = stream.standard_normal((views, S, C))
    for code in range(C):
        rows = np.flatnonzero(out.flipped & (code == CLEAN))
        scores = FEATURES[rows] @ W[code % views]
        scores[:, code] = -np.inf
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        expected, variance = weights.sum(axis=0), (weights * (1 - weights)).sum(axis=0)
        counts = np.bincount(out.label[rows], minlength=C)
        assert (np.abs(counts - expected) <= 5 * np.sqrt(variance)).all()
        # Far from uniform, so that the comparison means something.
        assert weights.max(axis=1).mean() > 0.6


def test_parts_depend_on_the_sample_not_only_on_its_class() -> None:
    first = FEATURES[0]
    alike = np.tile(first, (N, 1))
    zeros = np.zeros(N, dtype=int)
    mixed = np.where((np.arange(N) % 2)[:, None] == 0, alike, -alike)
    out = inject("instance", zeros, C, 0.5, rng(), features=mixed)
    even, odd = (np.bincount(out.label[i::2], minlength=C)[1:] for i in (0, 1))
    assert even.argmax() != odd.argmax()


def test_confidence_flips_exactly_the_most_confusable_to_their_best_wrong_class() -> None:
    probs = np.array([[0.9, 0.06, 0.04], [0.5, 0.1, 0.4], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]])
    out = inject(
        "instance", np.array([0, 0, 0, 2]), 3, 0.5, rng(), variant="confidence", probs=probs
    )
    np.testing.assert_array_equal(out.label, [0, 2, 1, 2])
    again = run("confidence", 0.29)
    assert again.flipped.sum() == 3480  # not int(0.29 * N), which is 3479


@pytest.mark.parametrize(
    ("variant", "keep"),
    [
        ("pmd1", lambda g: 0.5 + 0.5 * g**2),
        ("pmd2", lambda g: g**3),
        ("pmd3", lambda g: (g**3 + g**2 + g) / 3),
    ],
)
def test_margin_noise_keeps_as_the_formula_says(variant: str, keep: object) -> None:
    out = run(variant, 0.35, factor=1.2)
    others = PROBS.copy()
    others[np.arange(N), CLEAN] = -1
    np.testing.assert_array_equal(out.label[out.flipped], others.argmax(1)[out.flipped])
    gap = np.maximum(PROBS[np.arange(N), CLEAN] - others.max(1), 0)
    wanted = keep(gap) / 1.2
    for low in np.arange(0, 1, 0.25):
        rows = (gap >= low) & (gap < low + 0.25)
        spread = np.sqrt((wanted[rows] * (1 - wanted[rows])).sum())
        assert abs((~out.flipped[rows]).sum() - wanted[rows].sum()) <= 5 * spread


def test_margin_noise_refuses_a_rate_below_the_ties() -> None:
    flat = np.full((N, C), 1 / C)
    with pytest.raises(ConfigError, match=r"1\.0000 of the samples"):
        inject("instance", CLEAN, C, 0.3, rng(), variant="pmd2", probs=flat)


@pytest.mark.parametrize(
    ("extra", "error", "message"),
    [
        ({"variant": "whole"}, ConfigError, "parts, single, confidence"),
        ({"features": None}, ConfigError, "needs features"),
        ({"variant": "pmd1", "probs": None}, ConfigError, "needs probs"),
        ({"features": FEATURES[:-1]}, DataError, "one row for each"),
        ({"features": FEATURES.astype(str)}, DataError, "must be numbers"),
        ({"features": np.where(FEATURES > 2, np.nan, FEATURES)}, DataError, "not finite"),
        ({"variant": "pmd1", "probs": PROBS[:, :-1]}, DataError, "4 columns"),
        ({"variant": "pmd1", "probs": PROBS * 2}, DataError, "sum to 1"),
        ({"variant": "pmd1", "probs": PROBS, "factor": 0.0}, ConfigError, "factor is 0"),
    ],
)
def test_bad_options_are_refused(
    extra: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        inject("instance", CLEAN, C, 0.3, rng(), **extra)


class TestOpenset:
    @pytest.mark.parametrize("rate", [0.3, 0.6])
    @pytest.mark.parametrize("fraction", [0.0, 0.25, 0.5, 0.75, 1.0])
    def test_three_valued_mask_has_the_exact_open_count(self, rate: float, fraction: float) -> None:
        out = inject("openset", CLEAN, C, rate, rng(), num_donors=9_000, open_fraction=fraction)
        chosen = int(rate * N + 1e-9)
        opened = int(fraction * chosen + 1e-9)
        assert (out.kind_of == 2).sum() == opened
        closed = chosen - opened
        moved = int((out.kind_of == 1).sum())
        assert abs(moved - closed * (1 - 1 / C)) <= 5 * np.sqrt(closed * 0.25) + 1e-9
        assert set(np.unique(out.kind_of)) <= {0, 1, 2}
        np.testing.assert_array_equal(out.label[out.kind_of == 2], CLEAN[out.kind_of == 2])
        np.testing.assert_array_equal(out.donor >= 0, out.kind_of == 2)
        assert out.transition.sum() == N - opened

    def test_every_chosen_sample_is_open_or_closed(self) -> None:
        # With 1,000 classes a closed sample all but surely moves.
        out = inject("openset", np.arange(20), 1000, 1.0, rng(), num_donors=99, open_fraction=0.5)
        assert np.bincount(out.kind_of).tolist() == [0, 10, 10]

    def test_donors_repeat_only_when_they_must(self) -> None:
        enough = inject("openset", CLEAN, C, 0.5, rng(), num_donors=6_000)
        used = enough.donor[enough.donor >= 0]
        assert len(np.unique(used)) == len(used) == 6_000
        few = inject("openset", CLEAN, C, 0.5, rng(), num_donors=7)
        assert set(few.donor[few.donor >= 0].tolist()) == set(range(7))

    def test_bad_options_are_refused(self) -> None:
        with pytest.raises(ConfigError, match=r"open_fraction is 1\.5"):
            inject("openset", CLEAN, C, 0.5, rng(), num_donors=7, open_fraction=1.5)
        with pytest.raises(DataError, match="empty"):
            inject("openset", CLEAN, C, 0.5, rng(), num_donors=0)
