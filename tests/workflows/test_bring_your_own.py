"""Networks, losses and Datasets of the user's own; what cannot be used gets a sentence."""

import json
import sys

import numpy as np
import pytest
import timm
import torch
from torch import nn

from finished_runs import call, write_features
from labelclean import LabelCleaner, RobustClassifier, audit, losses, open_run
from labelclean.errors import ConfigError, DataError
from planted import command

pytestmark = pytest.mark.usefixtures("plain_figures")
COUNT = 48


class Halves(nn.Module):
    """Sixteen numbers of a picture: a network as people write it, maps out."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Conv2d(3, 16, 3, 2), nn.BatchNorm2d(16), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class Mine(losses.RobustLoss):
    """Mean absolute error, twice."""

    def __init__(self, scale: float = 2.0) -> None:
        super().__init__()
        self.scale = scale

    def compute(self, logits, labels, index, attention):
        return self.scale * (1 - logits.softmax(1).gather(1, labels[:, None])[:, 0])


@pytest.fixture(autouse=True)
def _as_before(monkeypatch) -> None:
    """Losses and networks of one test are not those of the next."""
    monkeypatch.setattr(losses.LOSSES, "_members", dict(losses.LOSSES._members))
    monkeypatch.setattr("labelclean.models.own._HANDED_OVER", {})


@pytest.fixture
def pictures() -> tuple[np.ndarray, np.ndarray]:
    """Dark and bright pictures, two of each wrongly named."""
    rng = np.random.default_rng(0)
    bright = np.arange(COUNT) % 2
    pixels = rng.integers(0, 60, (COUNT, 16, 16, 3)) + 150 * bright[:, None, None, None]
    names = np.array(["dark", "bright"])[bright]
    names[:4] = names[:4][::-1]
    return pixels.astype(np.uint8), names


def test_a_module_and_a_timm_model_as_backbone(pictures, tmp_path, monkeypatch):
    quick = {"loss": "cce", "epochs": 3, "threads": 1, "workers": 0, "no_cache": True}
    torch.manual_seed(0)
    own = Halves()
    before = {name: value.clone() for name, value in own.state_dict().items()}
    run = audit(
        pictures, out=tmp_path / "own", backbone=own, set=["model.image_size=32"], mode="head",
        **quick,
    )  # fmt: skip
    assert set(run.issues.row[:4]) == {0, 1, 2, 3}
    assert run.facts["backbone"]["name"] == "own:Halves"
    assert all(torch.equal(value, before[name]) for name, value in own.state_dict().items())
    said = run.predict(pictures[0][:6])
    # A new process does not have it: a sentence, and the network handed over again.
    monkeypatch.setattr("labelclean.models.own._HANDED_OVER", {})
    with pytest.raises(DataError, match=r"network of yours, Halves.*backbone=network"):
        open_run(tmp_path / "own").predict(pictures[0][:6])
    again = open_run(tmp_path / "own").predict(pictures[0][:6], backbone=own)
    assert np.allclose(np.stack(again.probs), np.stack(said.probs))
    # Handed over when the run is opened, it serves for everything; nothing else can be trained on.
    monkeypatch.setattr("labelclean.models.own._HANDED_OVER", {})
    with pytest.raises(ConfigError, match=r"open_run\(folder, backbone=network\)"):
        open_run(tmp_path / "own").retrain(epochs=2)
    opened = open_run(tmp_path / "own", backbone=own)
    assert opened.retrain(epochs=2).facts["after"]["trained_rows"]
    tuned = audit(
        pictures, out=tmp_path / "tuned", backbone=own, set=["model.image_size=32"],
        mode="finetune", **quick,
    )  # fmt: skip
    assert tuned.predict(pictures[0]).label_predicted.notna().all()
    model = timm.create_model("test_resnet", num_classes=7)
    known = audit(pictures, out=tmp_path / "timm", backbone=model, mode="head", **quick)
    monkeypatch.setattr("labelclean.models.own._HANDED_OVER", {})
    # timm can build this one again by itself.
    assert open_run(tmp_path / "timm").predict(pictures[0][:6]).label_predicted.notna().all()
    assert known.facts["backbone"]["name"] == "own:ResNet"


def test_losses_in_every_form(tmp_path):
    data = write_features(tmp_path / "digits.npz")
    quick = {"epochs": 3, "threads": 1, "overwrite": True, "out": tmp_path / "run"}
    losses.register("mine", Mine)
    run = audit(data, loss="mine", set=["loss.scale=3.0"], **quick)
    assert run.facts["loss"] == {"name": "mine", "params": {"scale": 3.0}}
    assert audit(data, loss=Mine, **quick).facts["loss"]["name"] == "Mine"
    assert audit(data, loss=Mine(4.0), **quick).facts["loss"]["name"] == "Mine"
    plain = nn.CrossEntropyLoss(reduction="none")
    assert audit(data, loss=plain, **quick).facts["loss"]["name"] == "CrossEntropyLoss"
    X, y = np.load(data)["X"], np.load(data)["y"]
    own = RobustClassifier(loss=plain, epochs=3, random_state=0).fit(X, y)
    ours = RobustClassifier(loss="cce", epochs=3, random_state=0).fit(X, y)
    assert np.allclose(own.predict_proba(X), ours.predict_proba(X), atol=1e-5)
    with pytest.raises(ConfigError, match="cannot be written as JSON"):
        own.save(tmp_path / "own.safetensors")


def test_a_loss_named_on_the_command_line_and_nowhere_else(tmp_path, monkeypatch):
    data = write_features(tmp_path / "digits.npz")
    code = (
        "from pathlib import Path\n"
        "from labelclean.losses import RobustLoss\n"
        "Path('loaded').touch()\n"
        "class Mine(RobustLoss):\n"
        "    def compute(self, logits, labels, index, attention):\n"
        "        return 1 - logits.softmax(1).gather(1, labels[:, None])[:, 0]\n"
    )
    (tmp_path / "my_losses.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_losses", raising=False)
    name, out = "my_losses:Mine", tmp_path / "run"
    (tmp_path / "r.toml").write_text(f'[loss]\nname = "{name}"\n')
    for words in (("--recipe", "r.toml"), ("--set", f"loss.name={name}")):
        done = command("audit", data, "--out", out, *words)
        assert done.exit_code == 2
        assert "never loads code" in done.stderr
    with pytest.raises(ConfigError, match="never loads code"):
        RobustClassifier(loss=name).fit(np.eye(4), [0, 1, 0, 1])
    assert not (tmp_path / "loaded").exists()
    call("audit", data, "--out", out, "--loss", name, "--epochs", "3", "--quiet")
    assert (tmp_path / "loaded").exists()
    assert json.loads((out / "run.json").read_text())["loss"]["name"] == name
    # A stored run names it and does not load it.
    (tmp_path / "loaded").unlink()
    del sys.modules["my_losses"]
    monkeypatch.setattr(losses.LOSSES, "_members", {
        key: value for key, value in losses.LOSSES._members.items() if key != name
    })  # fmt: skip
    done = command("retrain", out, "--threads", 1)
    assert done.exit_code == 2, done.output
    assert "never loads code" in done.stderr
    assert not (tmp_path / "loaded").exists()
    call("retrain", out, "--loss", name, "--epochs", "3", "--quiet")
    assert (tmp_path / "loaded").exists()


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 5)

    def forward(self, x):
        return self.layer(x.no_such_thing)


class Talks(Halves):
    def forward(self, x):
        return {"features": self.layer(x)}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"backbone": 7}, "backbone is int; give a name"),
        ({"backbone": Halves}, "backbone is type; give a name"),
        ({"backbone": Broken()}, "'own:Broken' cannot look at .* pictures"),
        ({"backbone": Talks()}, "it gives dict, and features are"),
        ({"backbone": nn.Identity()}, "has no parameters"),
        ({"backbone": "own:Nobody"}, "hand the object over in Python"),
        ({"loss": nn.CrossEntropyLoss()}, 'reduction="none"'),
        ({"loss": nn.Linear(2, 2)}, "it must give one value a sample"),
        ({"loss": 3}, "loss is int 3; give a name"),
        ({"loss": nn.CrossEntropyLoss}, "loss is type"),
        ({"loss": "no_module_at_all:Loss"}, "cannot be imported"),
        ({"loss": "json:dumps"}, "needs a class derived from"),
        ({"loss": "json:nothing"}, "has no 'nothing'"),
    ],
)
def test_what_cannot_be_used_gets_a_sentence(pictures, tmp_path, flags, words):
    with pytest.raises(ConfigError, match=words):
        audit(pictures, out=tmp_path / "run", threads=1, workers=0, mode="head", **flags)
    assert not (tmp_path / "run").exists()


def test_names_that_are_taken():
    with pytest.raises(ConfigError, match="comes with labelclean"):
        losses.register("gce", Mine)
    with pytest.raises(ConfigError, match="no name for a loss"):
        losses.register("auto", Mine)
    with pytest.raises(ConfigError, match="needs a class derived from"):
        losses.register("mine", nn.CrossEntropyLoss)


def test_estimators_take_a_network(pictures):
    torch.manual_seed(0)
    X, y = pictures
    model = RobustClassifier(backbone=Halves(), mode="head", epochs=3, random_state=0).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.8
    cleaner = LabelCleaner(backbone=Halves(), random_state=0).fit(X, y)
    assert set(cleaner.issues_.row[:4]) == {0, 1, 2, 3}
