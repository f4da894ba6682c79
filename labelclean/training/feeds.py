"""What the networks see in every step of a strategy's turn: rows drawn, loaded and mixed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import torch
from torch import Tensor

from labelclean.strategies import Feed, Turn
from labelclean.training.batches import Rows, epoch_order, share, split_batches
from labelclean.training.runtime import Runtime
from labelclean.training.task import Task

_GROUPS = 4
"""Most turns, and most groups of a turn, that draw apart from each other."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Where training stands: an epoch, a turn of it, a step of that and how many there are."""

    epoch: int
    turn: int
    step: int
    steps: int


class Feeds:
    """The feeds of a training.

    Args:
        task: What to train.
        runtime: Where; says which share of a feed is this process's.
    """

    def __init__(self, task: Task, runtime: Runtime) -> None:
        self.task, self.runtime = task, runtime
        self.epochs = task.settings.epochs or 1

    def drawn(self, turn: Turn, now: Moment) -> list[tuple[Tensor, ...]]:
        """Draw the rows of every step, a batch of every group."""
        first, *others = (self._cycle(group, now, g) for g, group in enumerate(turn.groups))
        batches = next(first)
        streams = [(batch for batches in other for batch in batches) for other in others]
        return [
            tuple(torch.from_numpy(rows) for rows in (batch, *(next(s) for s in streams)))
            for batch in batches
        ]

    def _cycle(self, group: Tensor, now: Moment, number: int) -> Iterator[list[Rows]]:
        """Give the batches of a group, again and again, each time in a new order."""
        rows, settings = group.cpu().numpy(), self.task.settings
        for again in count():
            draw = (again * _GROUPS + now.turn) * _GROUPS + number
            order = epoch_order(
                self.task.label[rows],
                seed=self.runtime.seed,
                epoch=now.epoch + self.epochs * draw,
                stratify=settings.stratify,
            )
            size = settings.batch_size or len(rows)
            yield split_batches(rows[order], size, self.runtime.processes)

    def mine(self, feed: Feed) -> Rows:
        """Give the places of a feed that are this process's."""
        return share(np.arange(len(feed.rows)), self.runtime.rank, self.runtime.processes)

    def inputs(self, feeds: list[Feed], epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Give this process's share of every feed, before and after mixing."""
        wanted = []
        for feed in feeds:
            mine = torch.from_numpy(self.mine(feed))
            both = mine if feed.partner is None else torch.cat([mine, feed.partner[mine]])
            wanted.append((feed.rows[both].numpy(), feed.view[both].numpy(), len(mine)))

        def of_view(number: int) -> Iterator[Rows]:
            return (rows[view == number] for rows, view, _ in wanted)

        # Another view is the picture as another epoch would see it.
        streams = [
            self.task.inputs.batches(of_view(number), epoch + number * self.epochs)
            for number in range(self.task.strategy.views)
        ]
        for feed, (rows, view, own) in zip(feeds, wanted, strict=True):
            parts = [next(stream) for stream in streams]
            batch = parts[0].new_empty((len(rows), *parts[0].shape[1:]))
            for number, part in enumerate(parts):
                batch[torch.from_numpy(view == number)] = part
            batch = batch.to(self.runtime.device, non_blocking=True)
            yield batch[:own], _mix(batch[:own], batch[own:], feed)


def feed_on(feed: Feed, device: torch.device) -> Feed:
    """Give a feed on a device."""
    partner = None if feed.partner is None else feed.partner.to(device)
    return replace(feed, rows=feed.rows.to(device), view=feed.view.to(device), partner=partner)


def _mix(own: Tensor, other: Tensor, feed: Feed) -> Tensor:
    if feed.partner is None:
        return own
    if own.dtype != torch.uint8:
        return (feed.share * own + (1 - feed.share) * other).to(own.dtype)
    # Pictures stay bytes, as the networks expect them.
    return (feed.share * own.float() + (1 - feed.share) * other.float()).round().to(torch.uint8)
