"""Small real data for the engine's tests: scikit-learn's digits as pictures and as features."""

import numpy as np
import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digits() -> tuple[np.ndarray, np.ndarray]:
    """(N, 8, 8) uint8 pictures and (N,) labels of three classes."""
    table = load_digits(n_class=3)
    return (table.images * 15.9).astype(np.uint8), table.target.astype(np.int64)
