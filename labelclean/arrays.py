"""The arrays that rooms hand to each other, by the type of their numbers, and when one is long."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Probs = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ENOUGH_ROWS = 1 << 17
"""Of more rows a part is asked or trained on: it settles as much."""
