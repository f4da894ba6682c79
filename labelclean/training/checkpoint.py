"""Checkpoints: everything a run needs to go on as if nothing had happened."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError  # only to catch it: nothing here is unpickled
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from labelclean.atomic import atomic_path
from labelclean.errors import DataError, OutputError
from labelclean.records.averaging import Allocate
from labelclean.records.recorder import unseen

_MODEL, _STATE = "model.safetensors", "state.pt"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state after an epoch.

    Args:
        epoch: The last epoch that is complete, 0-based.
        model: The model's state.
        state: Optimiser, loss memory and best epoch so far: tensors and plain values only.
    """

    epoch: int
    model: dict[str, Tensor]
    state: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run, of which only the newest is kept.

    Args:
        folder: Where they are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint as a whole, then remove older ones.

        Raises:
            OutputError: It cannot be written.
        """
        target = self.folder / f"epoch-{checkpoint.epoch:05d}"
        try:
            with atomic_path(target) as temporary:
                temporary.mkdir()
                model = {
                    name: t.detach().cpu().contiguous() for name, t in checkpoint.model.items()
                }
                (temporary / _MODEL).write_bytes(save(model))
                with (temporary / _STATE).open("wb") as file:
                    torch.save({"epoch": checkpoint.epoch, **checkpoint.state}, file)
        except (OSError, RuntimeError) as error:
            # torch gives a RuntimeError of its own where the disk is full in the middle.
            reason = (getattr(error, "strerror", None) or str(error)).splitlines()[0]
            raise OutputError(
                f"the checkpoint {target} cannot be written: {reason}. "
                "Free some space and go on with --resume."
            ) from error
        for path in self._complete():
            if path != target:
                shutil.rmtree(path, ignore_errors=True)

    def load(self) -> Checkpoint | None:
        """Read the newest checkpoint; None if there is none.

        Raises:
            DataError: It is damaged, or something else.
        """
        complete = self._complete()
        if not complete:
            return None
        try:
            state = torch.load(complete[-1] / _STATE, map_location="cpu", weights_only=True)
            return Checkpoint(state.pop("epoch"), load_file(complete[-1] / _MODEL), state)
        except (*UNFIT, EOFError, FileNotFoundError, UnpicklingError, SafetensorError) as error:
            raise damaged(self.folder, error) from error

    def _complete(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("epoch-*") if path.is_dir())


UNFIT = (RuntimeError, ValueError, KeyError, TypeError, AttributeError)
"""What torch raises when it is given the state of something else."""


def damaged(folder: Path, error: Exception) -> DataError:
    """Give the error to raise where what a killed run left cannot be used."""
    reason = (str(error).splitlines() or ["unknown reason"])[0]
    return DataError(
        f"the run in {folder.parent} cannot be resumed: what is in {folder.name} is damaged "
        f"({type(error).__name__}: {reason}). Begin again with --overwrite."
    )


def mapped(folder: Path) -> Allocate:
    """Give an allocator of arrays that are mapped from files, and found again after a crash.

    A file that holds something else raises DataError.
    """

    def allocate(name: str, kind: type[np.generic], shape: tuple[int, int]) -> NDArray[Any]:
        path = folder / f"{name}.npy"
        if not path.is_file():
            # Under its name only when it is whole: a run may die at any moment.
            with atomic_path(path) as temporary:
                new = np.lib.format.open_memmap(temporary, "w+", dtype=kind, shape=shape)
                new[:] = unseen(kind)
                new.flush()
                del new
        try:
            found: NDArray[Any] = np.lib.format.open_memmap(path, mode="r+")
        except (ValueError, EOFError) as error:
            raise damaged(folder, error) from error
        if found.dtype != kind or found.shape != shape:
            raise damaged(folder, ValueError(f"{path.name} is {found.shape} {found.dtype}"))
        return found

    return allocate
