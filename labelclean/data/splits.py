"""Which rows are audited, and which are held out."""

import numpy as np
from numpy.typing import NDArray

from labelclean.data.manifest import Manifest

HELD_OUT = ("test", "val")


def held_out(manifest: Manifest, audit_split: str | None) -> NDArray[np.bool_]:
    """(N,) True for rows of the splits test and val, but not of the one that is audited too."""
    if manifest.split is None:
        return np.zeros(len(manifest), bool)
    apart = [name for name in HELD_OUT if name != audit_split]
    return np.isin(manifest.split.astype(str), apart)
