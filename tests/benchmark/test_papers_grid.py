"""Cells: their names, their recipes, the noise they plant."""

import pytest

from labelclean.benchmark.papers.cell import stage_epochs
from labelclean.benchmark.papers.grid import Cell, Noise, all_cells, parse_noise, seeds_of
from labelclean.benchmark.papers.table import readable, results_table
from labelclean.errors import ConfigError
from labelclean.recipe import load_recipe


def test_a_cell_puts_its_loss_over_the_recipe():
    base = load_recipe(None, ["loss.name=gr", "loss.beta=2", "training.epochs=3"])
    recipe = Cell("gr:beta=12:lam=0.5", "symmetric:0.2", 0).recipe(base)
    assert (recipe.loss.name, recipe.loss.params) == ("gr", {"beta": 12, "lam": 0.5})
    assert recipe.training.epochs == 3
    assert Cell("mae", "symmetric:0.2", 0).recipe(base).loss.params == {}
    assert Cell("gr", "symmetric:0.2", 0).recipe(base).loss.params == {"beta": 2}


def test_a_cell_may_name_a_strategy_behind_its_loss():
    base = load_recipe(None, ["strategy.name=mixup", "strategy.alpha=4"])
    recipe = Cell("imae:T=8@self_paced:share=0.6", "symmetric:0.2", 0).recipe(base)
    assert (recipe.loss.name, recipe.loss.params) == ("imae", {"T": 8})
    assert (recipe.strategy.name, recipe.strategy.params) == ("self_paced", {"share": 0.6})
    assert Cell("cce", "symmetric:0.2", 0).recipe(base).strategy == base.strategy
    assert Cell("cce@plain", "symmetric:0.2", 0).recipe(base).strategy.params == {}


def test_names_work_on_every_system():
    assert Cell("imae:T=8", "symmetric:0.4", 1).name == "imae-T=8__symmetric-0.4__1"
    assert Cell("cce@mixup:alpha=4", "given", 0).name == "cce@mixup-alpha=4__given__0"


def test_a_grid_goes_seed_by_seed():
    cells = all_cells(["cce", "mae"], ["symmetric:0", "symmetric:0.4"], [0, 1])
    assert [cell.seed for cell in cells] == [0] * 4 + [1] * 4
    with pytest.raises(ConfigError, match="named twice"):
        all_cells(["cce", "cce"], ["symmetric:0"], [0])


def test_noise_is_read():
    assert parse_noise("symmetric:0.4") == Noise("symmetric", 0.4, None)
    assert parse_noise("symmetric:0.4:any") == Noise("symmetric", 0.4, "any")
    assert parse_noise("given") is None


@pytest.mark.parametrize("text", ["openset:0.1", "symmetric", "symmetric:x", "symmetric:1.5"])
def test_other_noise_is_refused(text):
    with pytest.raises(ConfigError):
        parse_noise(text)


@pytest.mark.parametrize("text", ["", "a", "1,-2", "1.5"])
def test_wrong_seeds_are_refused(text):
    with pytest.raises(ConfigError, match="whole numbers"):
        seeds_of(text)


def test_stages_are_the_ends_of_the_thirds():
    assert stage_epochs(30) == {"early": 9, "middle": 19, "late": 29}
    assert stage_epochs(1) == {"early": 0, "middle": 0, "late": 0}
    assert stage_epochs(4) == {"early": 1, "middle": 2, "late": 3}


def _content(final, **more):
    return {
        "measures": {"final_accuracy": final, **more},
        "curves": {"test_accuracy": [0.1, final]},
    }


def test_mean_and_deviation_over_the_seeds():
    found = [
        (Cell("cce", "symmetric:0.4", 0), _content(0.5, auroc_aum=0.9)),
        (Cell("cce", "symmetric:0.4", 1), _content(0.7, auroc_aum=None)),
        (Cell("nal", "symmetric:0.4", 0), _content(0.6, auroc_attention=0.8)),
    ]
    text = readable(found)
    assert "| symmetric:0.4 | cce | 2 | 0.600 (0.141) |" in text
    assert "| symmetric:0.4 | nal | 1 | 0.600 |" in text
    assert "| noise | loss | seeds | attention | aum |" in text
    assert "| symmetric:0.4 | nal | 1 | 0.800 | - |" in text
    table = results_table(found)
    assert table["auroc_aum"].to_pylist() == [0.9, None, None]
    assert table["curve_test_accuracy"].to_pylist()[0] == [0.1, 0.5]


def test_settings_of_one_loss_become_a_sweep():
    found = [
        (Cell(f"gr:beta={beta}:lam={lam}", noise, 0), _content(value))
        for beta, lam, noise, value in (
            (4, 0.1, "symmetric:0.2", 0.61),
            (4, 0.1, "symmetric:0.4", 0.55),
            (8, 0.5, "symmetric:0.4", 0.59),
        )
    ]
    text = readable(found)
    assert "| beta | lam | symmetric:0.2 | symmetric:0.4 |" in text
    assert "| 4 | 0.1 | 0.610 | 0.550 |" in text
    assert "| 8 | 0.5 | - | 0.590 |" in text
    assert "Settings of" not in readable(found[:2])
