"""Small labelled tables with planted noise."""

import numpy as np
from sklearn.datasets import load_digits, make_blobs


def flipped(y: np.ndarray, rate: float, seed: int) -> np.ndarray:
    """Move a share of integer labels 0 ... C-1 to another class."""
    rng = np.random.default_rng(seed)
    classes = int(y.max()) + 1
    noisy = y.copy()
    rows = rng.random(len(y)) < rate
    noisy[rows] = (y[rows] + rng.integers(1, classes, rows.sum())) % classes
    return noisy


def blobs(rows: int = 150, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(rows, 4, centers=classes, cluster_std=1.5, random_state=seed)


def digits() -> tuple[np.ndarray, np.ndarray]:
    return load_digits(return_X_y=True)
