"""What is wrong with pictures as pictures, from what the scan saw of them; nothing is decoded."""

import numpy as np
from numpy.typing import NDArray

from labelclean.data.scan import Scan

DARK, BRIGHT, FLAT, UNIFORM = 50, 235, 40, 4  # levels of grey, 0 to 255
ODD_SHAPE = 3.0
BLURRED = 4.0
COMMON = 0.1
"""What more than this share of the pictures have is how the data set is, and no finding."""


def quality_words(scan: Scan) -> dict[int, str]:
    """Say of readable rows what is wrong with the picture, such as "dark, blurred".

    Args:
        scan: A look at every picture.

    Returns:
        Row to words; rows with nothing to say are absent, all of them without pictures.
    """
    if scan.light is None or not scan.readable.any():
        return {}
    found: dict[int, list[str]] = {}
    for name, seen in _faults(scan, scan.light).items():
        rows = seen & scan.readable
        if rows.sum() <= COMMON * scan.readable.sum():
            for row in np.flatnonzero(rows).tolist():
                found.setdefault(row, []).append(name)
    return {row: ", ".join(found[row]) for row in sorted(found)}


def _faults(scan: Scan, light: NDArray[np.float32]) -> dict[str, NDArray[np.bool_]]:
    low, high, spread, sharpness = light.astype(np.float64).T
    uniform = spread < UNIFORM
    flat = ~uniform & (high - low < FLAT)
    seen = scan.readable & ~uniform
    blurred = np.zeros(len(low), bool)
    if seen.any():
        detail = np.log(np.maximum(sharpness, 1e-3))
        usual = np.median(detail[seen])
        # 1.4826 times the median deviation is a standard deviation where values are normal.
        width = 1.4826 * float(np.median(np.abs(detail[seen] - usual)))
        blurred = seen & (detail < usual - BLURRED * max(width, 0.2))
    shape = np.log(np.maximum(scan.width, 1) / np.maximum(scan.height, 1))
    usual_shape = float(np.median(shape[scan.readable]))
    return {
        "nearly uniform": uniform,
        "dark": ~uniform & (high < DARK),
        "bright": ~uniform & (low > BRIGHT),
        "low contrast": flat,
        "blurred": blurred & ~flat,
        "odd shape": np.abs(shape - usual_shape) > np.log(ODD_SHAPE),
    }
