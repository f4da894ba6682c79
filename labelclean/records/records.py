"""The Records value: what training said about each sample, as plain arrays."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from labelclean.catalogue import unknown_name
from labelclean.errors import DataError


@dataclass(frozen=True, slots=True)
class Records:
    """Evidence about N samples, C classes, E epochs; a sample is its row.

    NaN (in `predicted`: -1) marks a sample that was not seen in that epoch.

    Args:
        label: (N,) int64, the given label.
        probs: (N, C) float32, final in-sample probabilities, model in evaluation mode.
        mean_probs: (N, C) float32, probabilities read off the training passes, averaged over the
            epochs after the first third.
        embedding: (N, D) float32, features of the samples.
        p_given: (E, N) float32, probability of the given label after each epoch.
        margin: (E, N) float32, logit of the given label minus the largest other logit.
        loss: (E, N) float32, loss of the sample.
        predicted: (E, N) int32, predicted class, -1 where unseen.
        attention: (E, N) float32, attention weight tau of the noise-attention loss.
        target_given: (E, N) float32, the soft target's mass on the given label.
        target: (N, C) float32, the final soft targets.
    """

    label: NDArray[np.int64]
    probs: NDArray[np.float32]
    mean_probs: NDArray[np.float32] | None = None
    embedding: NDArray[np.float32] | None = None
    p_given: NDArray[np.float32] | None = None
    margin: NDArray[np.float32] | None = None
    loss: NDArray[np.float32] | None = None
    predicted: NDArray[np.int32] | None = None
    attention: NDArray[np.float32] | None = None
    target_given: NDArray[np.float32] | None = None
    target: NDArray[np.float32] | None = None

    def require(self, names: Iterable[str]) -> None:
        """Raise DataError that names every array of `names` these records lack."""
        known = {field.name for field in fields(self)}
        for name in names:
            if name not in known:
                raise unknown_name("record", name, known)
        missing = [name for name in names if getattr(self, name) is None]
        if missing:
            raise DataError(
                f"these records hold no {', '.join(missing)}. "
                "Train with a loss and a mode that record them, or choose another scorer."
            )
