"""Strategies that train whole networks on pictures, stopped and gone on with."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from strategy_tasks import NAMES, SMALL

from finished_runs import write_pictures
from labelclean.data.read import read_manifest
from labelclean.options import RunOptions
from labelclean.recipe import load_recipe
from labelclean.training.runtime import start_runtime
from labelclean.workflows.observe import observe

EPOCHS = 4
# One that mixes two views of every row for two networks; the others take as long each.
EVERY_DAY = "dividemix"


class StoppedError(Exception):
    pass


def stopping(after: int):
    @contextmanager
    def bar(name: str) -> Iterator[object]:
        def tell(done: int, total: int) -> None:
            if name == "train" and done == after:
                raise StoppedError

        yield tell

    return bar


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return read_manifest(write_pictures(tmp_path_factory.mktemp("pictures")))


@pytest.mark.parametrize(
    "name", [each if each == EVERY_DAY else pytest.param(each, marks=pytest.mark.slow)
             for each in NAMES]
)  # fmt: skip
def test_a_whole_network_goes_on_to_the_same_bytes(manifest, tmp_path, name):
    params = [f"strategy.{key}={value}" for key, value in SMALL.get(name, {}).items()]
    recipe = load_recipe(
        None,
        [
            "model.backbone=resnet20", "model.image_size=8", "training.mode=scratch",
            f"training.epochs={EPOCHS}", "training.batch_size=20", "data.workers=0",
            "training.learning_rate=0.02", "loss.name=cce", f"strategy.name={name}", *params,
        ],
    )  # fmt: skip

    def attempt(folder: str, stop: int) -> list[bytes]:
        (tmp_path / folder).mkdir(exist_ok=True)
        seen = observe(
            manifest, recipe, start_runtime("cpu", threads=1),
            options=RunOptions(progress=stopping(stop), no_cache=True),
            workspace=tmp_path / folder,
        )  # fmt: skip
        records = seen.fitted.records
        assert np.isfinite(records.probs).all()
        return [
            records.p_given.tobytes(),
            records.probs.tobytes(),
            seen.fitted.other_probs.tobytes(),
        ]

    whole = attempt("whole", EPOCHS + 1)
    with pytest.raises(StoppedError):
        attempt("cut", 2)
    assert attempt("cut", EPOCHS + 1) == whole
