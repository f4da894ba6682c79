"""A short budget of fuzzing for every reader."""

import pytest

from fuzz.readers import READERS
from fuzz.run import fuzz

BUDGET = {"manifest": 600, "recipe": 600, "decisions": 600, "run": 150}


@pytest.mark.slow
@pytest.mark.usefixtures("plain_figures")
@pytest.mark.parametrize("name", list(READERS))
def test_readers_understand_or_refuse(name, tmp_path):
    tally = fuzz(name, tmp_path, BUDGET[name])
    assert tally["tried"] >= BUDGET[name] / 2
    assert tally["refused"] > 0
