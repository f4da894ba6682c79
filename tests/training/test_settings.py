"""Training settings, schedules and optimisers."""

import pytest
import torch

from labelclean.errors import ConfigError
from labelclean.losses import build
from labelclean.recipe import load_recipe
from labelclean.training.optim import build_optimizer, set_rate
from labelclean.training.schedule import rate_factor
from labelclean.training.settings import MODES, TrainSettings


@pytest.mark.parametrize("mode", MODES)
def test_resolved_settings_leave_nothing_open(mode):
    settings = TrainSettings().resolved(mode, samples=1000)
    assert settings.mode == mode
    assert None not in [getattr(settings, name) for name in settings.__slots__]


def test_what_the_user_says_stays():
    settings = TrainSettings(epochs=3, batch_size=16, optimizer="sgd").resolved("head", 1000)
    assert (settings.epochs, settings.batch_size, settings.optimizer) == (3, 16, "sgd")


def test_all_faults_are_named_at_once():
    with pytest.raises(ConfigError) as caught:
        TrainSettings(optimizer="adam", epochs=0, schedule="linear", milestones=[2.0])
    text = str(caught.value)
    for part in ("Did you mean 'adamw'", "training.epochs is 0", "schedule", "milestones"):
        assert part in text


@pytest.mark.parametrize("mode", ["finetune", "scratch"])
def test_a_batch_of_one_is_refused_where_batch_norms_train(mode):
    with pytest.raises(ConfigError, match="at least two samples"):
        TrainSettings(batch_size=1).resolved(mode, 100)
    assert TrainSettings(batch_size=1).resolved("head", 100).batch_size == 1


def test_schedules():
    cosine = TrainSettings(schedule="cosine", floor=0.1, epochs=10)
    assert rate_factor(cosine, 0) == 1
    assert rate_factor(cosine, 0.5) == pytest.approx(0.55)
    assert rate_factor(cosine, 1) == pytest.approx(0.1)
    step = TrainSettings(schedule="step", milestones=[0.5, 0.75], gamma=0.1)
    assert [rate_factor(step, t) for t in (0, 0.49, 0.5, 0.75)] == pytest.approx([1, 1, 0.1, 0.01])
    restarts = TrainSettings(schedule="restarts", epochs=30, cycle=10, floor=0.05)
    assert rate_factor(restarts, 10 / 30) == pytest.approx(1)
    assert rate_factor(restarts, 9.999 / 30) == pytest.approx(0.05, abs=1e-3)
    assert rate_factor(TrainSettings(schedule="constant"), 0.7) == 1


def test_weights_decay_and_biases_do_not():
    settings = TrainSettings(weight_decay=0.5, learning_rate=0.2).resolved("head", 100)
    optimizer = build_optimizer([torch.nn.Linear(3, 2)], build("cce"), settings)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.5, 0.0]
    set_rate(optimizer, settings, 0.5)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.1, 0.1])


def test_parameters_of_a_loss_are_trained_at_their_own_rate():
    loss = build("adaptation", T=[[0.8, 0.2], [0.2, 0.8]])
    loss.bind(10, 2)
    settings = TrainSettings().resolved("head", 100)
    optimizer = build_optimizer([torch.nn.Linear(3, 2)], loss, settings)
    set_rate(optimizer, settings, 0)
    own = optimizer.param_groups[-1]
    assert own["params"] == list(loss.parameters())
    assert own["lr"] == pytest.approx(1e-3 * loss.step_scale)


def test_recipes_take_the_parameters_of_the_named_loss(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[loss]\nname = "gr"\nbeta = 4.0\n[training]\nepochs = 3\n')
    recipe = load_recipe(path)
    assert (recipe.loss.name, recipe.loss.params) == ("gr", {"beta": 4.0})
    changed = load_recipe(path, ["loss.lam=1.0"])
    assert changed.loss.params == {"beta": 4.0, "lam": 1.0}
    other = load_recipe(path, ["loss.name=imae", "loss.T=4"])
    assert (other.loss.name, other.loss.params) == ("imae", {"T": 4})
    with pytest.raises(ConfigError, match=r"training\.epoch.*Did you mean 'epochs'"):
        load_recipe(path, ["training.epoch=4"])


def test_heads_see_very_many_samples_less_often():
    seen = [TrainSettings().resolved("head", count).epochs for count in (0, 9, 131_072, 200_000)]
    assert seen == [20, 20, 20, 13]
    assert TrainSettings().resolved("head", 5_000_000).epochs == 8
    assert TrainSettings(epochs=30).resolved("head", 5_000_000).epochs == 30
