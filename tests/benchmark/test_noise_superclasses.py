"""CIFAR-100: the true superclasses, the blocks some code takes for them, and the names."""

import numpy as np
import pytest

from labelclean.benchmark.class_maps import (
    CIFAR10_MAP,
    CIFAR10_NAMES,
    CIFAR100_NAMES,
    MNIST_MAP,
    builtin_map,
    cifar10_map,
    cifar100_groups,
    superclasses,
)
from labelclean.benchmark.noise import inject
from labelclean.errors import ConfigError

CLEAN = np.repeat(np.arange(100), 400)


def names(group: np.ndarray) -> set[str]:
    return {CIFAR100_NAMES[code] for code in group.tolist()}


@pytest.mark.parametrize("kind", ["true", "blocks"])
def test_groups_are_20_times_5_and_cover_every_class_once(kind: str) -> None:
    groups = superclasses(kind)
    assert groups.shape == (20, 5)
    np.testing.assert_array_equal(np.sort(groups.ravel()), np.arange(100))
    assert (np.diff(groups, axis=1) > 0).all()  # "the next class" is the next by name


def test_true_groups_are_the_published_superclasses() -> None:
    found = [names(group) for group in superclasses()]
    assert {"beaver", "dolphin", "otter", "seal", "whale"} in found
    assert {"bicycle", "bus", "motorcycle", "pickup_truck", "train"} in found
    assert {"maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"} in found
    assert {"baby", "boy", "girl", "man", "woman"} in found
    assert {"clock", "keyboard", "lamp", "telephone", "television"} in found
    assert {"apple", "aquarium_fish", "baby", "bear", "beaver"} not in found


def test_names_are_the_hundred_in_alphabetical_order() -> None:
    assert len(set(CIFAR100_NAMES)) == 100
    assert list(CIFAR100_NAMES) == sorted(CIFAR100_NAMES)


def test_pair_maps_are_the_published_ones() -> None:
    moved = {CIFAR10_NAMES[i]: CIFAR10_NAMES[j] for i, j in enumerate(CIFAR10_MAP) if i != j}
    assert moved == {
        "truck": "automobile", "bird": "airplane", "deer": "horse", "cat": "dog", "dog": "cat",
    }  # fmt: skip
    assert {i: j for i, j in enumerate(MNIST_MAP) if i != j} == {7: 1, 2: 7, 3: 8, 5: 6, 6: 5}


def test_circular_goes_to_the_next_of_the_superclass() -> None:
    out = inject("asymmetric", CLEAN, 100, 0.2, np.random.default_rng(0), classes=CIFAR100_NAMES)
    following = np.empty(100, dtype=int)
    following[superclasses()] = np.roll(superclasses(), -1, axis=1)
    np.testing.assert_array_equal(out.label[out.flipped], following[CLEAN[out.flipped]])
    assert out.actual_rate == pytest.approx(0.2, abs=0.01)


def test_swap_moves_two_of_five_both_ways() -> None:
    out = inject(
        "asymmetric", CLEAN, 100, 1.0, np.random.default_rng(0),
        classes=CIFAR100_NAMES, variant="swap",
    )  # fmt: skip
    moved = out.transition - np.diag(np.diag(out.transition))
    np.testing.assert_array_equal(moved, moved.T)
    for group in superclasses():
        assert (moved[np.ix_(group, group)] > 0).sum() == 2
    assert out.actual_rate == pytest.approx(0.4)


def test_swap_draws_other_pairs_with_another_seed() -> None:
    runs = [
        inject(
            "asymmetric", CLEAN, 100, 1.0, np.random.default_rng(seed),
            mapping=superclasses(), variant="swap",
        ).transition
        for seed in (0, 1)
    ]  # fmt: skip
    assert (runs[0] != runs[1]).any()


@pytest.mark.parametrize("kind", ["true", "blocks"])
def test_uniform_stays_inside_the_group_and_reaches_all_of_it(kind: str) -> None:
    out = inject(
        "asymmetric", CLEAN, 100, 0.5, np.random.default_rng(0),
        classes=CIFAR100_NAMES, variant="uniform", superclass=kind,
    )  # fmt: skip
    inside = np.zeros((100, 100), dtype=bool)
    for group in superclasses(kind):
        inside[np.ix_(group, group)] = True
    np.testing.assert_array_equal(out.transition > 0, inside)
    assert out.actual_rate == pytest.approx(0.5, abs=0.015)


def test_a_part_of_whole_superclasses_is_known() -> None:
    vehicles = [CIFAR100_NAMES[i] for i in (8, 13, 48, 58, 90, 41, 69, 81, 85, 89)]
    order = sorted(vehicles)
    groups = cifar100_groups(order)
    assert groups is not None
    assert {frozenset(order[i] for i in group) for group in groups.tolist()} == {
        frozenset(vehicles[:5]), frozenset(vehicles[5:]),
    }  # fmt: skip
    assert cifar100_groups(order[:7]) is None


def test_usual_spellings_are_known() -> None:
    spelled = [name.replace("_", " ").title() for name in CIFAR100_NAMES]
    spelled[47], spelled[16], spelled[39] = "maple", "cans", "computer keyboard"
    np.testing.assert_array_equal(cifar100_groups(spelled), superclasses())
    ten = ["aeroplane", "Auto", "birds", "CAT", "deer", "dog ", "frog", "horse", "ship", "truck"]
    np.testing.assert_array_equal(cifar10_map(ten), CIFAR10_MAP)


@pytest.mark.parametrize("classes", [tuple(range(10)), CIFAR10_NAMES[:9], ("cat", "cats") * 5])
def test_other_classes_are_not_cifar10(classes: tuple[object, ...]) -> None:
    assert cifar10_map(classes) is None


def test_unknown_kind_of_superclass_is_refused() -> None:
    with pytest.raises(ConfigError, match="true, blocks"):
        superclasses("fine")


@pytest.mark.parametrize("classes", [list(range(100)), sorted(map(str, range(100)))])
def test_ids_need_the_name_of_their_data_set(classes: list[object]) -> None:
    groups = builtin_map("cifar100", classes)
    assert [[int(str(classes[i])) for i in group] for group in groups] == superclasses().tolist()


def test_builtin_map_follows_the_order_of_the_classes() -> None:
    classes = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
    target = builtin_map("mnist", classes)
    assert [classes[target[i]] for i in range(10)] == [MNIST_MAP[fine] for fine in classes]
