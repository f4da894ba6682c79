"""What a network says, epoch by epoch, about samples that it is not trained on."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from labelclean.records.averaging import Allocate, LaterEpochs
from labelclean.training.inference import predict_probs
from labelclean.training.runtime import Runtime
from labelclean.training.task import Inputs


class LeftOut:
    """Watches a training and averages what the network says about samples that it does not see.

    Args:
        model: The network that is trained.
        inputs: The R samples that are left out.
        runtime: Where to compute; the process that leads keeps the average.
        classes: C.
        epochs: How many epochs are planned.
        allocate: Gives an array by name, type and shape.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Inputs,
        runtime: Runtime,
        *,
        classes: int,
        epochs: int,
        allocate: Allocate,
    ) -> None:
        self.model, self.inputs, self.runtime = model, inputs, runtime
        self.first = epochs // 3
        self._later = LaterEpochs(allocate, len(inputs), classes, epochs) if runtime.leads else None

    def after_batch(
        self,
        index: Tensor,
        logits: Tensor,
        labels: Tensor,
        losses: Tensor | None,
        attention: Tensor | None,
    ) -> None:
        """Pass over what is said about samples that are trained on."""

    def after_epoch(self, epoch: int, targets: Tensor | None) -> None:
        """Ask the network about the samples that are left out."""
        if epoch < self.first:
            return
        probs = predict_probs(self.model, self.inputs, self.runtime)
        if self._later is not None:
            self._later.add(epoch, probs)

    def flush(self) -> None:
        """Bring a mapped array to the disk."""
        if self._later is not None:
            self._later.flush()

    def mean(self, trained: int) -> NDArray[np.float32] | None:
        """(R, C) the mean over the later of so many epochs; None in a process that does not lead.

        Where training stopped before them, it is what the network says now.
        """
        if trained <= self.first:
            return predict_probs(self.model, self.inputs, self.runtime)
        return None if self._later is None else self._later.mean(trained)
