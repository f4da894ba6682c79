"""The notebook's face: every kind of source, a keyword for every flag, a run to look at."""

import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch.utils.data import Dataset

import labelclean
from finished_runs import write_pictures
from labelclean import LabelCleaner, audit, open_run
from labelclean.cli.audit import command
from labelclean.errors import ConfigError, DataError

pytestmark = pytest.mark.usefixtures("plain_figures")
COUNT, WRONG = 90, 9
NOT_IN_PYTHON = {"json", "quiet", "debug", "fail_on", "help", "profile"}


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(N, 16, 16) pictures, names of which the first are wrong, (N, D) features."""
    found = load_digits(n_class=3)
    label = found.target[:COUNT].copy()
    label[:WRONG] = (label[:WRONG] + 1) % 3
    names = np.array(["zero", "one", "two"])[label]
    pictures = np.stack(
        [np.asarray(Image.fromarray((one * 15.9).astype(np.uint8)).resize((16, 16)))
         for one in found.images[:COUNT]]
    )  # fmt: skip
    return pictures, names, found.data[:COUNT]


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> dict[str, object]:
    """Keywords of a tiny network."""
    return {
        "backbone": "test_resnet", "mode": "head", "epochs": 2, "loss": "cce", "workers": 0,
        "set": ["model.pretrained=false", "model.image_size=32"], "threads": 1,
        "cache_dir": tmp_path_factory.mktemp("cache"),
    }  # fmt: skip


class Pairs(Dataset):
    """A torch Dataset as people write it: float tensors, channels first, class numbers."""

    classes = ("zero", "one", "two")

    def __init__(self, pictures: np.ndarray, names: np.ndarray) -> None:
        self.pictures, self.label = pictures, [self.classes.index(name) for name in names]

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(self.pictures[row])[None].float() / 255, self.label[row]


def hub(pictures: np.ndarray, names: np.ndarray):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"img": datasets.Image(), "kind": datasets.ClassLabel(names=["zero", "one", "two"])}
    )
    columns = {"img": [Image.fromarray(one) for one in pictures], "kind": names.tolist()}
    return datasets.Dataset.from_dict(columns, features=features)


def test_every_kind_of_source_is_the_same_audit(digits, quick, tmp_path):
    pictures, names, _ = digits
    frame = pd.DataFrame({"image": [Image.fromarray(one) for one in pictures], "label": names})
    sources = {
        "frame": frame,
        "pair": (pictures, names),
        "listed": ([Image.fromarray(one) for one in pictures], names.tolist()),
        "torch": Pairs(pictures, names),
        "hub": hub(pictures, names),
    }
    found = {}
    for name, source in sources.items():
        run = audit(source, out=tmp_path / name, **quick)
        assert run.issues["row"].is_unique
        assert len(run.issues) == COUNT
        found[name] = run.issues.sort_values("row")["p_error"].to_numpy()
        # The run stands by itself: what was in memory is kept, and everything reads it again.
        again = open_run(tmp_path / name)
        target = again.export(
            tmp_path / f"{name}.npz" if name == "pair" else tmp_path / f"{name}-x"
        )
        assert target.exists()
        assert again.noise_rate == run.noise_rate
    for name, p_error in found.items():
        assert np.allclose(p_error, found["frame"], atol=1e-6), name


def test_a_story_in_a_notebook(quick, tmp_path):
    """A frame with an index of its own, all the way to a retrained model."""
    table = write_pictures(tmp_path / "data")
    frame = pd.read_csv(table).drop(index=50)
    frame["image"] = [str(table.parent / name) for name in frame.image]
    frame.index = [f"case-{row}" for row in frame.index]
    run = audit(frame, out=tmp_path / "run", truth_col="true", **quick)
    assert re.fullmatch(r"<labelclean run .*run: 89 rows audited, 3 classes; .*>", repr(run))
    assert len(repr(run)) < 300
    page = run._repr_html_()
    flagged = int((run.issues.action != "keep").sum())
    assert page.count("<img") == min(flagged, 12)
    assert page.count("data:image/png;base64,") == page.count("<img")
    assert "3 classes" in page
    assert set(run.issues.sample_id) <= set(frame.index)
    assert len(run.corrected) == len(frame)
    assert run.facts["truth"]["wrong"] == 12
    again = audit(frame, out=tmp_path / "two", baseline=tmp_path / "run", **quick)
    assert again.changes is not None
    assert again.changes["newly_flagged"] == []
    first = run.issues.iloc[0]
    (tmp_path / "said.jsonl").write_text(
        f'{{"row": {first.row}, "sample_id": "{first.sample_id}", "decision": "confirm", '
        '"label": null, "time": "now"}\n'
    )
    told = open_run(tmp_path / "run").report(decisions=tmp_path / "said.jsonl")
    assert told.issues.set_index("row").loc[first.row, "action"] == "keep"
    assert run.export(tmp_path / "clean.csv").is_file()
    said = run.predict(frame.drop(columns=["label", "true", "split"]))
    assert said.label_predicted.notna().all()
    listed = run.predict(frame["image"].tolist()[:5])
    assert listed.label_predicted.tolist() == said.label_predicted.tolist()[:5]
    assert run.retrain(epochs=2).facts["after"]["accuracy"] is not None


def test_features_and_probabilities_from_memory(digits, tmp_path):
    _, names, features = digits
    run = audit((features, names), out=tmp_path / "f", loss="cce", epochs=8, threads=1)
    assert run.issues.row[:WRONG].isin(range(WRONG)).mean() > 0.5
    frame = pd.DataFrame({"label": names}, index=np.arange(100, 100 + COUNT))
    side = audit(frame, out=tmp_path / "g", features=features, loss="cce", epochs=8, threads=1)
    assert side.issues.sample_id.astype(int).between(100, 99 + COUNT).all()
    order = sorted(set(names))
    probs = np.full((COUNT, 3), 0.05)
    truth = np.array(["zero", "one", "two"])[load_digits(n_class=3).target[:COUNT]]
    probs[np.arange(COUNT), [order.index(name) for name in truth]] = 0.9
    given = audit(frame, out=tmp_path / "p", pred_probs=probs)
    assert set(given.issues.row[:WRONG]) == set(range(WRONG))
    assert run.predict(features[:4]).label_predicted.notna().all()


def test_keywords_are_the_flags_of_the_command():
    flags = {
        max(parameter.opts, key=len).removeprefix("--").replace("-", "_")
        for parameter in command.params
        if parameter.param_type_name == "option"
    }
    keywords = set(inspect.signature(audit).parameters) - {"source", "progress"}
    assert keywords == flags - NOT_IN_PYTHON
    assert labelclean.open_run is open_run
    with pytest.raises(ConfigError, match="Did you mean 'label_col'"):
        audit("x.csv", lable_col="y")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (42, "cannot read int"),
        (["a.png", "b.png"], "cannot read list"),
        ((np.zeros((4, 3)), [0, 1]), "one label for 4 rows"),
        ((np.zeros((4, 3)), [0, 1.5, 2, "x"]), "neither all text nor all whole numbers"),
        ((np.zeros((4, 8, 8)), [0, 1, 0, 1]), "pictures are uint8"),
        (pd.DataFrame({"a": [1, 2], "label": [0, 1]}), "no image column"),
        (pd.DataFrame({"image": [np.full((4, 4), 7.0)] * 2, "label": [0, 1]}), "no picture"),
    ],
)
def test_what_cannot_be_audited_gets_a_sentence_and_leaves_nothing(source, words, tmp_path):
    with pytest.raises(DataError, match=words):
        audit(source, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_other_refusals(digits, tmp_path):
    pictures, names, _ = digits
    datasets = pytest.importorskip("datasets")
    both = datasets.DatasetDict({"train": hub(pictures, names)})
    with pytest.raises(DataError, match=r"several splits.*dataset\['train'\]"):
        audit(both, out=tmp_path / "run")
    with pytest.raises(DataError, match="stream"):
        audit(hub(pictures, names).to_iterable_dataset(), out=tmp_path / "run")
    with pytest.raises(DataError, match="holds no finished run"):
        open_run(tmp_path)
    with pytest.raises(ConfigError, match="features is list"):
        audit("x.csv", features=[[1.0]])
    Path(tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="not a run of labelclean"):
        audit((pictures, names), out=tmp_path / "run")


def test_the_cleaner_keeps_the_index_of_a_frame(digits):
    _, names, features = digits
    index = pd.Index([f"case-{row}" for row in range(COUNT)], name="case")
    frame = pd.DataFrame(features, index=index)
    cleaner = LabelCleaner(random_state=0).fit(frame, names)
    assert cleaner.issues_.index.name == "case"
    assert (cleaner.issues_.index == index[cleaner.issues_.row]).all()
    plain = LabelCleaner(random_state=0).fit(features, names)
    assert plain.issues_.index.equals(pd.RangeIndex(COUNT))
    assert plain.issues_.reset_index(drop=True).equals(cleaner.issues_.reset_index(drop=True))
