"""The networks of a training: those that learn, their averages, and a way back."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from labelclean.strategies import EpochPlan, Strategy
from labelclean.training.runtime import Runtime


class Networks:
    """The networks of a training, of which one is the result.

    Args:
        model: The result. Where averages are kept it is the first one's average.
        peers: The other networks that learn.
        strategy: Says what is kept beside them.

    Attributes:
        learning: The networks that learn.
        averages: The average of each, or none.
    """

    def __init__(self, model: nn.Module, peers: Sequence[nn.Module], strategy: Strategy) -> None:
        self.learning, self.averages = [model, *peers], list[nn.Module]()
        if strategy.averaged:
            self.learning = [copy.deepcopy(model), *peers]
            self.averages = [model, *(copy.deepcopy(peer) for peer in peers)]
        for average in self.averages:
            average.requires_grad_(False)
        self._others = [each for each in (*self.learning, *self.averages) if each is not model]
        self._remembered = list[dict[str, Tensor]]()

    def state(self) -> dict[str, Any]:
        """Give what a checkpoint must hold beside the result."""
        return {
            "others": [each.state_dict() for each in self._others],
            "remembered": self._remembered,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        for each, values in zip(self._others, state["others"], strict=True):
            each.load_state_dict(values)
        self._remembered = state["remembered"]

    def begin_epoch(self, plan: EpochPlan) -> bool:
        """Go back to weights that were remembered, and remember these; say whether it went back."""
        back = plan.restore and bool(self._remembered)
        if back:
            for each, values in zip(self.learning, self._remembered, strict=True):
                each.load_state_dict(values)
        if plan.remember:
            self._remembered = [
                {name: value.detach().clone() for name, value in each.state_dict().items()}
                for each in self.learning
            ]
        elif back:
            self._remembered = []
        return back

    @torch.no_grad()
    def average(self, number: int, decay: float) -> None:
        """Move the average of a network towards it; batch norms' statistics are copied."""
        average, source = self.averages[number], self.learning[number]
        for slow, fast in zip(average.parameters(), source.parameters(), strict=True):
            slow.lerp_(fast, 1 - decay)
        for kept, now in zip(average.buffers(), source.buffers(), strict=True):
            kept.copy_(now)

    def agree(self, runtime: Runtime) -> None:
        """Take the leading process's statistics."""
        for each in (*self.learning, *self.averages):
            for buffer in each.buffers():
                runtime.same_as_lead(buffer)


@contextmanager
def classifier_inputs(networks: Sequence[nn.Module]) -> Iterator[list[Tensor | None]]:
    """Give what the classifiers of some networks saw last, while the context lasts."""
    seen: list[Tensor | None] = [None] * len(networks)

    def note(number: int, values: tuple[Tensor, ...]) -> None:
        seen[number] = values[0].detach()

    hooks = []
    for number, network in enumerate(networks):
        head: Any = getattr(network, "head", network)
        hooks.append(
            head.classifier.register_forward_pre_hook(
                lambda _module, values, number=number: note(number, values)
            )
        )
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
