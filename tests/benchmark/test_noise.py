"""Closed-set label protocols: rates, counts and invariants of what was produced."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from labelclean.benchmark.class_maps import CIFAR10_MAP, CIFAR10_NAMES, MNIST_MAP
from labelclean.benchmark.noise import NOISES, inject
from labelclean.errors import ConfigError, DataError

N, C = 20_000, 10


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def labels(n: int = N, c: int = C, seed: int = 7) -> np.ndarray:
    return rng(seed).integers(0, c, n)


def plausible(count: int, trials: int, p: float) -> bool:
    """Whether a count lies inside all but one in a million of what chance gives."""
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], trials, p)
    return low <= count <= high


def options(kind: str, n: int, c: int) -> dict[str, object]:
    """Give each protocol what it cannot do without."""
    return {
        "symmetric": {},
        "asymmetric": {"mapping": np.roll(np.arange(c), -1)},
        "pairflip": {},
        "instance": {"features": rng(3).normal(size=(n, 5))},
        "openset": {"num_donors": 50, "open_fraction": 0.5},
        "matrix": {"transition": np.full((c, c), 1 / c)},
    }[kind]


@pytest.mark.parametrize("kind", NOISES)
class TestContract:
    def test_masks_rates_and_counts_describe_the_labels(self, kind: str) -> None:
        clean = labels()
        out = inject(kind, clean, C, 0.3, rng(), **options(kind, N, C))
        assert out.label.dtype == np.int64
        assert out.kind_of.dtype == np.int8
        assert out.flipped.dtype == bool
        closed = out.label != clean
        np.testing.assert_array_equal(out.kind_of == 1, closed)
        np.testing.assert_array_equal(out.flipped, out.kind_of > 0)
        assert out.actual_rate == out.flipped.mean() > 0.05
        table = np.zeros((C, C), dtype=np.int64)
        known = out.kind_of != 2
        np.add.at(table, (clean[known], out.label[known]), 1)
        np.testing.assert_array_equal(out.transition, table)

    def test_same_seed_same_bytes_other_seed_other_noise(self, kind: str) -> None:
        runs = [
            inject(kind, labels(), C, 0.3, rng(seed), **options(kind, N, C)) for seed in (5, 5, 6)
        ]
        assert runs[0].label.tobytes() == runs[1].label.tobytes()
        assert runs[0].kind_of.tobytes() == runs[1].kind_of.tobytes()
        assert runs[0].label.tobytes() != runs[2].label.tobytes()

    def test_input_is_left_alone(self, kind: str) -> None:
        clean = labels(500)
        before = clean.copy()
        out = inject(kind, clean, C, 1.0, rng(), **options(kind, 500, C))
        np.testing.assert_array_equal(clean, before)
        out.label[0] = 0  # the answer is the caller's own, writable array

    def test_rate_zero_changes_nothing(self, kind: str) -> None:
        extra = {"transition": np.eye(C)} if kind == "matrix" else options(kind, N, C)
        out = inject(kind, labels(), C, 0.0, rng(), **extra)
        assert not out.flipped.any()
        assert out.actual_rate == out.nominal_rate == 0.0

    @pytest.mark.parametrize("rate", [-0.1, 1.1, 20, float("nan"), float("inf")])
    def test_impossible_rate_is_refused(self, kind: str, rate: float) -> None:
        with pytest.raises(ConfigError, match="rate is"):
            inject(kind, labels(50), C, rate, rng(), **options(kind, 50, C))

    def test_one_class_is_refused(self, kind: str) -> None:
        with pytest.raises(DataError, match="at least 2"):
            inject(kind, np.zeros(9, dtype=int), 1, 0.2, rng(), **options(kind, 9, 1))

    def test_unknown_option_is_refused(self, kind: str) -> None:
        with pytest.raises(ConfigError, match="no parameter 'colour'"):
            inject(kind, labels(9), C, 0.2, rng(), colour="red")


def test_percent_is_explained() -> None:
    with pytest.raises(ConfigError, match=r"20 % is 0\.2"):
        inject("symmetric", labels(9), C, 20, rng())


def test_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'symmetric'"):
        inject("symetric", labels(9), C, 0.2, rng())


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.array([0, 1, -1, 12]), r"2 labels lie outside 0\.\.9, first at rows 2, 3"),
        (np.array([]), "non-empty"),
        (np.array([0.5, 1.0]), "float64"),
        (np.zeros((2, 2), dtype=int), r"\(2, 2\)"),
    ],
)
def test_bad_labels_are_refused(bad: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        inject("symmetric", bad, C, 0.2, rng())


class TestSymmetric:
    @pytest.mark.parametrize("rate", [0.1, 0.4, 0.8])
    def test_other_flips_at_the_rate_uniformly_over_other_classes(self, rate: float) -> None:
        clean = labels()
        out = inject("symmetric", clean, C, rate, rng(), variant="other")
        assert plausible(int(out.flipped.sum()), N, rate)
        for row in out.transition - np.diag(np.diag(out.transition)):
            assert stats.chisquare(row[row > 0]).pvalue > 1e-6
            assert (row > 0).sum() == C - 1

    def test_rate_one_never_keeps_the_class(self) -> None:
        out = inject("symmetric", labels(), C, 1.0, rng())
        assert out.flipped.all()

    @pytest.mark.parametrize(("rate", "actual"), [(0.4, 0.36), (0.8, 0.72)])
    def test_any_chooses_exactly_and_keeps_one_in_c(self, rate: float, actual: float) -> None:
        clean = labels()
        out = inject("symmetric", clean, C, rate, rng(), variant="any")
        assert plausible(int(out.flipped.sum()), int(rate * N), 1 - 1 / C)
        assert out.actual_rate == pytest.approx(actual, abs=0.01)
        assert out.nominal_rate == rate

    def test_any_counts_as_people_do(self) -> None:
        # int(0.29 * 100) is 28 in floating point; with 1,000 classes a chosen sample moves.
        out = inject("symmetric", np.arange(100), 10**3, 0.29, rng(4), variant="any")
        assert out.flipped.sum() == 29

    def test_balanced_flips_exactly_in_every_class(self) -> None:
        clean = np.repeat(np.arange(4), [10, 25, 100, 3])
        out = inject("symmetric", clean, 4, 0.2, rng(), balanced=True)
        np.testing.assert_array_equal(np.bincount(clean[out.flipped]), [2, 5, 20, 1])

    def test_balanced_any_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="balanced"):
            inject("symmetric", labels(9), C, 0.2, rng(), variant="any", balanced=True)

    @given(
        clean=st.lists(st.integers(0, 4), min_size=1, max_size=40),
        rate=st.floats(0, 1),
        variant=st.sampled_from(["other", "any"]),
        seed=st.integers(0, 2**32),
    )
    def test_always_valid_labels_and_never_more_than_chosen(
        self, clean: list[int], rate: float, variant: str, seed: int
    ) -> None:
        out = inject("symmetric", np.array(clean), 5, rate, rng(seed), variant=variant)
        assert ((out.label >= 0) & (out.label < 5)).all()
        if variant == "any":
            assert out.flipped.sum() <= rate * len(clean) + 1e-6


class TestAsymmetric:
    @pytest.mark.parametrize("mapping", [CIFAR10_MAP, MNIST_MAP])
    def test_mapped_classes_flip_at_the_rate_and_only_to_their_counterpart(
        self, mapping: tuple[int, ...]
    ) -> None:
        clean = labels()
        out = inject("asymmetric", clean, C, 0.4, rng(), mapping=mapping)
        for code, target in enumerate(mapping):
            rows = clean == code
            if code == target:
                assert not out.flipped[rows].any()
                continue
            assert plausible(int(out.transition[code, target]), int(rows.sum()), 0.4)
            assert out.transition[code].sum() == out.transition[code, [code, target]].sum()

    def test_cats_that_became_dogs_stay_dogs(self) -> None:
        """Class-by-class flipping in place leaves 24 % of the cats flipped instead of 40 %."""
        cat, dog = 3, 5
        clean = np.repeat([cat, dog], 10_000)
        out = inject("asymmetric", clean, C, 0.4, rng(), mapping=CIFAR10_MAP)
        for code, other in ((cat, dog), (dog, cat)):
            assert plausible(int(out.transition[code, other]), 10_000, 0.4)
        everything = inject("asymmetric", clean, C, 1.0, rng(), mapping=CIFAR10_MAP)
        np.testing.assert_array_equal(everything.label, clean[::-1])

    def test_overall_rate_is_half_on_balanced_cifar10(self) -> None:
        out = inject("asymmetric", labels(), C, 0.4, rng(), classes=CIFAR10_NAMES)
        assert out.actual_rate == pytest.approx(0.2, abs=0.01)
        assert out.nominal_rate == 0.4

    def test_class_order_does_not_matter_to_the_pairs(self) -> None:
        names = ["dog", "Plane", "cat", "car", "ship", "truck", "bird", "deer", "frog", "horse"]
        out = inject("asymmetric", labels(), C, 1.0, rng(), classes=names)
        pairs = {(names[i], names[j]) for i, j in np.argwhere(out.transition).tolist() if i != j}
        assert pairs == {
            ("truck", "car"), ("bird", "Plane"), ("deer", "horse"), ("cat", "dog"), ("dog", "cat"),
        }  # fmt: skip

    def test_named_pairs(self) -> None:
        out = inject(
            "asymmetric", labels(300, 3), 3, 1.0, rng(), classes=["a", "b", "c"], mapping={"a": "c"}
        )
        assert out.transition[0, 2] > 0
        assert out.transition[0, 2] == out.flipped.sum()

    @pytest.mark.parametrize("classes", [tuple(range(10)), tuple("0123456789"), ("x", "y")])
    def test_unknown_or_ambiguous_classes_need_a_map(self, classes: tuple[object, ...]) -> None:
        with pytest.raises(ConfigError, match="--map"):
            inject("asymmetric", labels(50, 2), len(classes), 0.2, rng(), classes=classes)

    @pytest.mark.parametrize(
        ("extra", "message"),
        [
            ({"mapping": {"a": "z", "q": "b"}}, "'z', 'q'"),
            ({"mapping": "imagenet"}, "cifar10, cifar100, mnist"),
            ({"mapping": "mnist"}, "classes 0 to 9"),
            ({"mapping": [0, 1]}, r"shape \(2,\)"),
            ({"mapping": [0, 1, 3]}, r"points at 3"),
            ({"mapping": [0, 1, 2]}, "every class to itself"),
            ({"mapping": [[0, 1], [1, 2]]}, "different classes"),
            ({"mapping": [[0], [1]]}, "at least 2"),
            ({"mapping": [[0, 1]], "variant": "spiral"}, "circular, swap, uniform"),
            ({"mapping": [1, 0, 2], "variant": "swap"}, "no variants"),
        ],
    )
    def test_bad_maps_are_refused(self, extra: dict[str, object], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            inject("asymmetric", labels(30, 3), 3, 0.2, rng(), classes=["a", "b", "c"], **extra)

    def test_pairflip_goes_round(self) -> None:
        clean = labels()
        out = inject("pairflip", clean, C, 0.45, rng())
        assert plausible(int(out.flipped.sum()), N, 0.45)
        np.testing.assert_array_equal(out.label[out.flipped], (clean[out.flipped] + 1) % C)


class TestMatrix:
    def test_counts_follow_the_rows(self) -> None:
        T = rng(1).dirichlet(np.ones(C), C)
        clean = labels()
        out = inject("matrix", clean, C, 1.0, rng(), transition=T)
        for code, row in enumerate(out.transition):
            assert stats.chisquare(row, T[code] * row.sum()).pvalue > 1e-6
        assert out.nominal_rate == pytest.approx(1 - T[clean, clean].mean())

    def test_impossible_labels_never_appear(self) -> None:
        T = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])
        out = inject("matrix", labels(5000, 3), 3, 1.0, rng(), transition=T)
        np.testing.assert_array_equal(out.transition > 0, T > 0)

    @given(
        weights=st.lists(
            st.lists(st.sampled_from([0, 0, 1e-300, 1e-9, 0.1, 1, 7]), min_size=4, max_size=4)
            .filter(lambda row: sum(row) > 0),
            min_size=4,
            max_size=4,
        ),
        seed=st.integers(0, 2**32),
    )  # fmt: skip
    def test_only_what_has_a_probability_is_drawn(
        self, weights: list[list[float]], seed: int
    ) -> None:
        T = np.array(weights, dtype=float)
        T /= T.sum(axis=1, keepdims=True)
        clean = np.arange(40) % 4
        out = inject("matrix", clean, 4, 1.0, rng(seed), transition=T)
        assert (T[clean, out.label] > 0).all()

    @pytest.mark.parametrize(
        ("T", "message"),
        [
            (np.eye(2), r"shape \(2, 2\)"),
            (np.eye(3) * 0.9, "row 0 .sum 0.9"),
            (np.array([[1.5, -0.5, 0], [0, 1, 0], [0, 0, 1]]), "least -0.5"),
            (np.full((3, 3), np.nan), "not row-stochastic"),
            (np.array([["a"] * 3] * 3), "must be numbers"),
        ],
    )
    def test_bad_matrices_are_refused(self, T: np.ndarray, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            inject("matrix", labels(30, 3), 3, 0.2, rng(), transition=T)

    def test_matrix_is_required(self) -> None:
        with pytest.raises(ConfigError, match="transition"):
            inject("matrix", labels(30), C, 0.2, rng())
