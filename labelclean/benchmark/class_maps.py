"""Which class is mistaken for which: the papers' class-pair maps and CIFAR-100's superclasses."""

from collections.abc import Mapping, Sequence

import numpy as np

from labelclean.benchmark.injection import check_choice
from labelclean.catalogue import nearest_name
from labelclean.errors import ConfigError, shortlist

_CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck"
CIFAR10_NAMES = tuple(_CIFAR10.split())
# Position i holds the class that i is mistaken for; itself where the class stays clean.
CIFAR10_MAP = (0, 1, 0, 5, 7, 3, 6, 7, 8, 1)
MNIST_MAP = (0, 1, 7, 8, 4, 6, 5, 1, 8, 9)

_CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus
butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch
crab crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo
keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain
mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain
plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone
television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
CIFAR100_NAMES = tuple(_CIFAR100.split())
# Fine ids are alphabetical, so five consecutive ids are not a superclass.
CIFAR100_SUPERCLASSES = (
    (4, 30, 55, 72, 95),
    (1, 32, 67, 73, 91),
    (54, 62, 70, 82, 92),
    (9, 10, 16, 28, 61),
    (0, 51, 53, 57, 83),
    (22, 39, 40, 86, 87),
    (5, 20, 25, 84, 94),
    (6, 7, 14, 18, 24),
    (3, 42, 43, 88, 97),
    (12, 17, 37, 68, 76),
    (23, 33, 49, 60, 71),
    (15, 19, 21, 31, 38),
    (34, 63, 64, 66, 75),
    (26, 45, 77, 79, 99),
    (2, 11, 35, 46, 98),
    (27, 29, 44, 78, 93),
    (36, 50, 65, 74, 80),
    (47, 52, 56, 59, 96),
    (8, 13, 48, 58, 90),
    (41, 69, 81, 85, 89),
)
SUPERCLASS_KINDS = ("true", "blocks")
BUILTIN_MAPS = ("cifar10", "cifar100", "mnist")

_ALIASES = {
    "plane": "airplane",
    "aeroplane": "airplane",
    "car": "automobile",
    "auto": "automobile",
    "computer_keyboard": "keyboard",
    "lawnmower": "lawn_mower",
    "maple": "maple_tree",
    "oak": "oak_tree",
    "palm": "palm_tree",
    "pine": "pine_tree",
    "willow": "willow_tree",
}


def superclasses(kind: str = "true") -> np.ndarray:
    """Give CIFAR-100's groups of five fine ids.

    Args:
        kind: "true" for the real superclasses; "blocks" for five consecutive ids, which several
            papers' code takes for superclasses, for parity with their numbers.

    Returns:
        (20, 5) int64 fine ids.
    """
    check_choice("superclass", kind, SUPERCLASS_KINDS)
    return np.arange(100).reshape(20, 5) if kind == "blocks" else np.array(CIFAR100_SUPERCLASSES)


def cifar10_map(classes: Sequence[object]) -> np.ndarray | None:
    """Give the CIFAR-10 map in the order of `classes`, or None if these are not its ten names.

    Args:
        classes: (C,) class labels in the order used for the label codes.

    Returns:
        (C,) int64, the class each is mistaken for.
    """
    ids = _ids(classes, CIFAR10_NAMES)
    if ids is None or len(ids) != len(CIFAR10_NAMES):
        return None
    position = {fine: code for code, fine in enumerate(ids)}
    return np.array([position[CIFAR10_MAP[fine]] for fine in ids])


def cifar100_groups(classes: Sequence[object], kind: str = "true") -> np.ndarray | None:
    """Give CIFAR-100's superclasses as positions in `classes`, or None if these are other classes.

    A part of CIFAR-100 made of whole superclasses is known too, such as Vehicles-10.

    Args:
        classes: (C,) class labels in the order used for the label codes.
        kind: "true" or "blocks", see `superclasses`.

    Returns:
        (C / 5, 5) int64 positions in `classes`, in the order of the fine ids inside a group.
    """
    groups = superclasses(kind)
    ids = _ids(classes, CIFAR100_NAMES)
    if ids is None:
        return None
    position = {fine: code for code, fine in enumerate(ids)}
    present = [group for group in groups.tolist() if any(fine in position for fine in group)]
    if any(fine not in position for group in present for fine in group):
        return None
    return np.array([[position[fine] for fine in group] for group in present])


def builtin_map(name: str, classes: Sequence[object], kind: str = "true") -> np.ndarray:
    """Give a data set's map for classes that are its ids, which by themselves could be anybody's.

    Args:
        name: One of BUILTIN_MAPS.
        classes: (C,) the ids 0 to C-1 as integers or text, in any order.
        kind: For CIFAR-100 "true" or "blocks", see `superclasses`.

    Returns:
        (C,) int64 map, or (20, 5) int64 groups for CIFAR-100, as positions in `classes`.

    Raises:
        ConfigError: The name is unknown, or the classes are not that data set's ids.
    """
    check_choice("map", name, BUILTIN_MAPS)
    by_id = {
        "cifar10": np.array(CIFAR10_MAP),
        "cifar100": superclasses(kind),
        "mnist": np.array(MNIST_MAP),
    }[name]
    position = {str(given): code for code, given in enumerate(classes)}
    if set(position) != {str(fine) for fine in range(by_id.size)}:
        raise ConfigError(
            f"the map {name} is for the classes 0 to {by_id.size - 1}; the data has "
            f"{shortlist(map(repr, classes))}."
        )
    order = np.array([position[str(fine)] for fine in range(by_id.size)])
    if by_id.ndim == 2:
        return np.asarray(order[by_id])
    target = np.empty_like(by_id)
    target[order] = order[by_id]
    return target


def pair_map(pairs: Mapping[str, str], classes: Sequence[object]) -> np.ndarray:
    """Turn named pairs into positions; classes that are not named stay clean.

    Args:
        pairs: Class to the class it is mistaken for, both as text.
        classes: (C,) class labels in the order used for the label codes.

    Returns:
        (C,) int64, the class each is mistaken for.

    Raises:
        ConfigError: A name is not among the classes.
    """
    position = {str(name): code for code, name in enumerate(classes)}
    unknown = dict.fromkeys(name for pair in pairs.items() for name in pair if name not in position)
    if unknown:
        named = shortlist(f"{name!r}{nearest_name(name, position)}" for name in unknown)
        raise ConfigError(
            f"the map names classes the data does not have: {named}. "
            f"The data's classes: {shortlist(position, 20)}."
        )
    target = np.arange(len(classes))
    for name, other in pairs.items():
        target[position[name]] = position[other]
    return target


def _ids(classes: Sequence[object], names: tuple[str, ...]) -> list[int] | None:
    """Give each class's id in `names`, or None unless all are different members of it."""
    position = {name: code for code, name in enumerate(names)}
    ids = [position.get(_spelling(name, position)) for name in classes]
    found = [fine for fine in ids if fine is not None]
    return found if len(set(found)) == len(classes) else None


def _spelling(name: object, known: Mapping[str, int]) -> str:
    plain = str(name).strip().lower().replace(" ", "_").replace("-", "_")
    plain = _ALIASES.get(plain, plain)
    return plain if plain in known else plain.removesuffix("s")
