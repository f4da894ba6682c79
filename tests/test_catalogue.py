"""Catalogues and messages: nearest names, missing and unknown parameters."""

import pytest

from labelclean.catalogue import Catalogue
from labelclean.errors import ConfigError, DataError, LabelCleanError, shortlist


def thing(size: int, colour: str = "red") -> tuple[int, str]:
    """Make a thing.

    More words.
    """
    return size, colour


THINGS: Catalogue[tuple[int, str]] = Catalogue("thing", {"plain": thing})


def test_a_catalogue_is_a_mapping_that_builds():
    assert list(THINGS) == ["plain"]
    assert "other" not in THINGS
    assert THINGS.build("plain", size=3) == (3, "red")
    assert THINGS.describe() == [("plain", "Make a thing.")]


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("Plane", {}, "unknown thing 'Plane'. Did you mean 'plain'?"),
        ("zzz", {}, "Known: plain."),
        ("plain", {"size": 1, "color": "x"}, "no parameter 'color'. Did you mean 'colour'?"),
        ("plain", {}, "needs a value for size"),
    ],
)
def test_errors_help(name, params, words):
    with pytest.raises(ConfigError) as error:
        THINGS.build(name, **params)
    assert words in str(error.value)


def test_exit_codes_and_shortlists():
    assert [kind.exit_code for kind in (LabelCleanError, ConfigError, DataError)] == [1, 2, 3]
    assert issubclass(DataError, ValueError)
    assert shortlist(range(3)) == "0, 1, 2"
    assert shortlist(range(12)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
