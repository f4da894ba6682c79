"""Checkpoints: everything a run needs to go on as if nothing had happened."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from labelclean.atomic import atomic_path
from labelclean.errors import OutputError
from labelclean.records.recorder import Allocate, unseen

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
                save_file(model, temporary / _MODEL)
                torch.save({"epoch": checkpoint.epoch, **checkpoint.state}, temporary / _STATE)
                for path in temporary.iterdir():
                    with path.open("rb+") as file:
                        os.fsync(file.fileno())
        except OSError as error:
            raise OutputError(
                f"the checkpoint {target} cannot be written: {error.strerror or error}. "
                "Free some space and go on with --resume."
            ) from error
        for path in self._complete():
            if path != target:
                shutil.rmtree(path, ignore_errors=True)

    def load(self) -> Checkpoint | None:
        """Read the newest checkpoint; None if there is none."""
        complete = self._complete()
        if not complete:
            return None
        state = torch.load(complete[-1] / _STATE, map_location="cpu", weights_only=True)
        return Checkpoint(state.pop("epoch"), load_file(complete[-1] / _MODEL), state)

    def _complete(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("epoch-*") if path.is_dir())


def mapped(folder: Path) -> Allocate:
    """Give an allocator of arrays that are mapped from files, and found again after a crash."""

    def allocate(name: str, kind: type[np.generic], shape: tuple[int, int]) -> NDArray[Any]:
        path = folder / f"{name}.npy"
        if not path.is_file():
            # Under its name only when it is whole: a run may die at any moment.
            with atomic_path(path) as temporary:
                new = np.lib.format.open_memmap(temporary, "w+", dtype=kind, shape=shape)
                new[:] = unseen(kind)
                new.flush()
                del new
        found: NDArray[Any] = np.lib.format.open_memmap(path, mode="r+")
        return found

    return allocate
