"""Recipes: every shipped one loads; what is unknown or of the wrong type is refused."""

import pytest

from labelclean.errors import ConfigError
from labelclean.recipe import Recipe, load_recipe, recipe_folder, recipe_names


@pytest.mark.parametrize("name", recipe_names())
def test_shipped_recipes_load_and_explain_themselves(name):
    assert isinstance(load_recipe(name), Recipe)
    head = (recipe_folder() / f"{name}.toml").read_text(encoding="utf-8").splitlines()[:3]
    assert all(line.startswith("# ") for line in head)


def test_there_are_recipes():
    assert "quick" in recipe_names()


def test_defaults_then_recipe_then_overrides(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[data]\nlimit = 5\nworkers = 1\n")
    recipe = load_recipe(str(path), ["data.limit=7", "data.image_col=my picture"])
    assert recipe.data.limit == 7
    assert recipe.data.workers == 1
    assert recipe.data.image_col == "my picture"
    assert recipe.plain()["data"]["limit"] == 7  # type: ignore[index]
    assert load_recipe() == Recipe()


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["dta.limit=1"], "no section [dta]; Did you mean 'data'?"),
        (["data.limits=1"], "no key data.limits; Did you mean 'limit'?"),
        (["data.limit=many"], "data.limit is 'many'; it must be of type int"),
        (["data.limit=true"], "data.limit is True"),
        (["data.limit=0"], "at least 1"),
        (["limit=1"], "not of the form section.key=value"),
    ],
)
def test_wrong_overrides_are_refused(overrides, words):
    with pytest.raises(ConfigError) as error:
        load_recipe(None, overrides)
    assert words in str(error.value)


def test_wrong_recipes_are_refused(tmp_path):
    path = tmp_path / "bad.toml"
    for text, words in [
        ("limit = 5\n", "outside any section"),
        ("[data\n", "not valid TOML"),
        ("[data]\nlimitt = 5\n[loos]\n", "no section [loos]"),
    ]:
        path.write_text(text)
        with pytest.raises(ConfigError) as error:
            load_recipe(path)
        assert words in str(error.value)
    with pytest.raises(ConfigError, match="does not exist"):
        load_recipe("nowhere.toml")
    with pytest.raises(ConfigError, match=r"Did you mean 'quick'\?"):
        load_recipe("quik")
