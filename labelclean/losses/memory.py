"""What a loss remembers about every sample."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labelclean.losses.margin import blocks

Gather = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class SampleMemory(nn.Module):
    """A row of targets for every sample, by sample id, kept in buffers.

    Attributes:
        targets: (N, C) float32, or None before `bind`.
        seen: (N,) bool, which rows were ever written.
    """

    def __init__(self) -> None:
        super().__init__()
        self.targets: Tensor | None
        self.seen: Tensor
        self.register_buffer("targets", None)
        self.register_buffer("seen", torch.zeros(0, dtype=torch.bool))

    def bind(self, num_samples: int, num_classes: int) -> None:
        """Allocate the rows, all zero and unseen."""
        device = self.seen.device
        self.targets = torch.zeros(num_samples, num_classes, device=device)
        self.seen = torch.zeros(num_samples, dtype=torch.bool, device=device)

    def read(self, index: Tensor, first: Tensor | None = None) -> Tensor:
        """Give (B, C) rows of (B,) samples; those never seen start at `first`, else at zero.

        Args:
            index: (B,) sample ids.
            first: (B,) class numbers, (B, C) rows, or None.
        """
        rows = self.rows.index_select(0, index)
        if first is not None:
            new = ~self.seen[index]
            if new.any():
                start = F.one_hot(first, rows.shape[1]) if first.dim() == 1 else first
                rows[new] = start[new].to(rows.dtype)
        return rows

    def write(self, index: Tensor, rows: Tensor) -> bool:
        """Store (B, C) rows, the first of each sample; say whether there were no others."""
        unique, inverse = torch.unique(index, return_inverse=True)
        distinct = len(unique) == len(index)
        if not distinct:
            places = torch.arange(len(index), device=index.device)
            first = places.new_full((len(unique),), len(index))
            first = first.scatter_reduce(0, inverse, places, reduce="amin")
            index, rows = unique, rows[first]
        self.rows.index_copy_(0, index, rows.to(self.rows.dtype))
        self.seen[index] = True
        return distinct

    @torch.no_grad()
    def blend(
        self,
        index: Tensor,
        first: Tensor | None,
        logits: Tensor,
        keep: float,
        gather: Gather,
        clamp: float = 0,
    ) -> Tensor:
        """Move the rows of a batch towards the predictions, t <- keep t + (1 - keep) p.

        What is gathered from the other processes are finished rows, not predictions: only the
        process that has a sample knows the label its row starts at.

        Args:
            index: (B,) sample ids.
            first: Where the rows of samples never seen start; see `read`.
            logits: (B, C) of the predictions.
            keep: How much of a row stays.
            gather: Replaces the (index, rows) of this process by those of all.
            clamp: Keep p in [clamp, 1 - clamp] and renormalise it first.

        Returns:
            (B, C) the rows as stored, a copy.
        """
        rows = self.read(index, first)
        for block in blocks(logits):
            p = torch.softmax(logits[block], dim=1)
            if clamp:
                p = p.clamp_(clamp, 1 - clamp).div_(p.sum(dim=1, keepdim=True))
            rows[block].lerp_(p.to(rows.dtype), 1 - keep)
        everyone, all_rows = gather(index, rows)
        settled = self.write(everyone, all_rows)
        return rows if settled and everyone is index else self.read(index)

    @torch.no_grad()
    def begin(self, index: Tensor, first: Tensor, gather: Gather) -> None:
        """Store where the rows of a batch start, until every sample has been seen once."""
        # What was seen is the same in all processes, so they gather all together or not at all.
        if not bool(self.seen.all()):
            self.write(*gather(index, self.read(index, first)))

    @property
    def rows(self) -> Tensor:
        """The targets of a bound memory."""
        if self.targets is None:
            raise RuntimeError("the memory is read before bind()")
        return self.targets
