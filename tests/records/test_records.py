import numpy as np
import pytest

from labelclean.errors import ConfigError, DataError
from labelclean.records.records import Records

RECORDS = Records(np.zeros(2, dtype=np.int64), np.full((2, 2), 0.5, dtype=np.float32))


def test_require_names_everything_that_is_missing():
    with pytest.raises(DataError, match="attention, embedding"):
        RECORDS.require(["label", "attention", "embedding"])


def test_require_passes_what_is_there_and_refuses_unknown_names():
    RECORDS.require(["label", "probs"])
    with pytest.raises(ConfigError, match="Did you mean 'margin'"):
        RECORDS.require(["margins"])
