"""The Recorder: watches training and keeps what it said about every sample, epoch by epoch."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelclean.errors import TrainingError, shortlist
from labelclean.records.averaging import Allocate, LaterEpochs
from labelclean.records.records import Records

RECORDED_SIGNALS: Mapping[str, type[np.generic]] = {
    "p_given": np.float32,
    "margin": np.float32,
    "loss": np.float32,
    "predicted": np.int32,
    "attention": np.float32,
    "target_given": np.float32,
}
_BATCH_SIGNALS = ("p_given", "margin", "loss", "predicted", "attention")
Sum = Callable[[Tensor], Tensor]


def unseen(kind: type[np.generic]) -> float:
    """Give the value that marks a sample that was not seen."""
    return -1 if kind is np.int32 else np.nan


def in_memory(_name: str, kind: type[np.generic], shape: tuple[int, int]) -> NDArray[Any]:
    """Allocate an array in memory."""
    return np.full(shape, unseen(kind), kind)


def _alone(values: Tensor) -> Tensor:
    return values


class Recorder:
    """Collects the signals of one epoch on the device, and all epochs in arrays of (E, N).

    Every signal is one float32 or int32 per sample and epoch: with the final probabilities
    4 N (C + 6 E) bytes in all, and 8 N C more where class posteriors are averaged.

    Args:
        label: (N,) int64 given labels.
        epochs: Number of epochs E.
        classes: Number of classes C, to average the class posteriors of the later epochs; None:
            they are not averaged.
        allocate: Gives an array by name, type and shape: a new one that says "not seen"
            throughout, or the one of a run that goes on.
        device: Where batches are.
        add: Adds a tensor over all processes.
        writes: Whether this process keeps the arrays; others only contribute.
    """

    def __init__(
        self,
        label: NDArray[np.int64],
        epochs: int,
        *,
        classes: int | None = None,
        allocate: Allocate = in_memory,
        device: torch.device | str = "cpu",
        add: Sum = _alone,
        writes: bool = True,
    ) -> None:
        self.label, self.epochs, self.add = label, epochs, add
        self._now = torch.zeros(len(_BATCH_SIGNALS) + 1, len(label), device=device)
        self._arrays = {
            name: allocate(name, kind, (epochs, len(label)))
            for name, kind in RECORDED_SIGNALS.items()
            if writes
        }
        self._posterior = (
            None if classes is None else torch.zeros(len(label), classes, device=device)
        )
        self._later = (
            LaterEpochs(allocate, len(label), classes, epochs)
            if classes is not None and writes
            else None
        )

    @torch.no_grad()
    def after_batch(
        self,
        index: Tensor,
        logits: Tensor,
        labels: Tensor,
        losses: Tensor | None,
        attention: Tensor | None,
    ) -> None:
        """Take what the model said about a batch; nothing leaves the device yet.

        Args:
            index: (B,) sample numbers.
            logits: (B, C).
            labels: (B,) given labels.
            losses: (B,) loss per sample, or None for a loss that has none.
            attention: (B,) attention logits, or None.
        """
        scores = logits.float()
        own = scores.gather(1, labels.unsqueeze(1)).squeeze(1)
        others = scores.scatter(1, labels.unsqueeze(1), -torch.inf)
        log_p = own - torch.logsumexp(scores, dim=1)
        missing = torch.full_like(own, torch.nan)
        rows = torch.stack(
            (
                log_p.exp(),
                own - others.amax(dim=1),
                missing if losses is None else losses.float(),
                scores.argmax(dim=1).float(),
                missing if attention is None else torch.sigmoid(attention.float()),
                torch.ones_like(own),
            )
        )
        self._now.index_add_(1, index, rows)
        if self._posterior is not None:
            self._posterior.index_add_(0, index, torch.softmax(scores, dim=1))

    def after_epoch(self, epoch: int, targets: Tensor | None) -> None:
        """Put an epoch away.

        Args:
            epoch: 0-based.
            targets: (N, C) the loss's soft targets, or None.

        Raises:
            TrainingError: A sample was seen twice, or not at all.
        """
        rows = self.add(self._now).cpu().numpy().copy()
        self._now.zero_()
        wrong = np.flatnonzero(rows[-1] != 1)
        if len(wrong):
            raise TrainingError(
                f"epoch {epoch}: samples {shortlist(wrong)} were not seen exactly once; "
                "this is a fault of labelclean, please report it."
            )
        values = dict(zip(_BATCH_SIGNALS, rows, strict=False))
        own = np.full(len(self.label), np.nan, np.float32)
        if targets is not None:
            given = torch.from_numpy(self.label).to(targets.device).unsqueeze(1)
            own = targets.gather(1, given).squeeze(1).float().cpu().numpy()
        values["target_given"] = own
        for name, array in self._arrays.items():
            array[epoch] = values[name]
        if self._posterior is not None:
            posterior = self.add(self._posterior).cpu().numpy()
            if self._later is not None:
                self._later.add(epoch, posterior)
            self._posterior.zero_()

    def flush(self) -> None:
        """Bring mapped arrays to the disk."""
        for array in self._arrays.values():
            if isinstance(array, np.memmap):
                array.flush()
        if self._later is not None:
            self._later.flush()

    def freeze(
        self,
        probs: NDArray[np.float32],
        *,
        epochs: int | None = None,
        embedding: NDArray[np.float32] | None = None,
        targets: NDArray[np.float32] | None = None,
    ) -> Records:
        """Give the Records of the epochs that were trained.

        Args:
            probs: (N, C) final probabilities.
            epochs: How many epochs were trained; None: all.
            embedding: (N, D) features of the samples.
            targets: (N, C) final soft targets.
        """
        kept: dict[str, NDArray[Any] | None] = {}
        for name, array in self._arrays.items():
            rows = np.asarray(array[:epochs])
            empty = rows.dtype.kind == "f" and bool(np.isnan(rows).all())
            kept[name] = None if empty else rows
        trained = self.epochs if epochs is None else epochs
        return Records(
            label=self.label,
            probs=probs,
            mean_probs=None if self._later is None else self._later.mean(trained),
            embedding=embedding,
            target=targets,
            **kept,
        )
