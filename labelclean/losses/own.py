"""Losses of the user's own: a class, an object, or code that the user names.

Code is loaded only where a person names it (`--loss package.module:Class`, `audit(loss=...)`);
a recipe, a stored run or a model folder can name such a loss, but never loads it.
"""

import copy
import importlib
import sys
from typing import Any

import torch
from torch import Tensor, nn

from labelclean.catalogue import Catalogue
from labelclean.errors import ConfigError, LabelCleanError
from labelclean.losses.base import RobustLoss

_FAULTS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, OSError,
    RuntimeError, SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""What code that is not ours may raise; all of it becomes a sentence."""
RESERVED = ("auto",)


class PlainLoss(RobustLoss):
    """A plain torch loss that answers per sample, such as CrossEntropyLoss(reduction="none").

    Args:
        module: Gives (B,) values for (B, C) logits and (B,) labels.
    """

    paper = "the user's own"
    formula = "the user's own"

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def compute(
        self, logits: Tensor, labels: Tensor, index: Tensor | None, attention: Tensor | None
    ) -> Tensor:
        """Ask the module."""
        values: Tensor = self.module(logits, labels)
        return values


def add_loss(catalogue: Catalogue[RobustLoss], name: str, member: Any) -> None:
    """Add a class of losses to the catalogue, for this process; a second time replaces it.

    Raises:
        ConfigError: It is no such class, or the name is taken.
    """
    if not isinstance(member, type) or not issubclass(member, RobustLoss):
        raise ConfigError(
            f"losses.register({name!r}, ...) needs a class derived from labelclean.losses."
            f"RobustLoss, not {_described(member)}."
        )
    if not isinstance(name, str) or not name.strip() or name in RESERVED:
        raise ConfigError(f"{name!r} is no name for a loss; give a word of your own.")
    catalogue.add(name, member)


def own_loss_name(catalogue: Catalogue[RobustLoss], given: Any) -> str:
    """Give the name of what the user asked for; add it to the catalogue if it is not known yet.

    Args:
        catalogue: The losses.
        given: A name; "package.module:Class", which is imported; a class; or an object.

    Raises:
        ConfigError: It is nothing that can be trained with.
    """
    if isinstance(given, str):
        if ":" in given and given not in catalogue:
            add_loss(catalogue, given, _imported(given))
        return given
    if isinstance(given, type) and issubclass(given, RobustLoss):
        add_loss(catalogue, given.__name__, given)
        return given.__name__
    if not isinstance(given, nn.Module):
        raise ConfigError(
            f"loss is {_described(given)}; give a name, a class derived from labelclean.losses."
            "RobustLoss, or an nn.Module that answers with one value a sample."
        )
    loss = given if isinstance(given, RobustLoss) else PlainLoss(given)
    probe_loss(type(given).__name__, loss)
    # Every training begins with a copy as fresh as the object is now.
    fresh = copy.deepcopy(loss)
    catalogue.add(type(given).__name__, lambda: copy.deepcopy(fresh))
    return type(given).__name__


def probe_loss(name: str, loss: RobustLoss) -> None:
    """Ask a loss about four samples, so that what cannot train is refused before anything is spent.

    Raises:
        ConfigError: It raises, or gives anything but one number a sample.
    """
    trial = copy.deepcopy(loss)
    logits = torch.tensor([[2.0, 0, -1], [0, 1, 0], [-1, 0, 2], [0, 0, 0]], requires_grad=True)
    labels, index = torch.tensor([0, 1, 2, 0]), torch.arange(4)
    attention = torch.zeros(4) if trial.needs_attention else None
    try:
        trial.bind(4, 3, 10)
        trial.start_epoch(0)
        values = trial(logits, labels, index=index, attention=attention)
    except LabelCleanError as error:
        raise ConfigError(f"loss {name!r} cannot be used: {error}") from error
    except _FAULTS as error:
        raise ConfigError(
            f"loss {name!r} raises {type(error).__name__} ({error}) on (4, 3) logits and (4,) "
            "labels; it must give one value a sample."
        ) from error
    shape = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
    if shape != (4,):
        raise ConfigError(
            f"loss {name!r} gives {shape} for 4 samples; it must give one value a sample, shape "
            '(4,). A loss of torch does with reduction="none".'
        )
    if not values.requires_grad or not bool(values.isfinite().all()):
        raise ConfigError(f"loss {name!r} gives values that are not finite or have no gradient.")


def _imported(text: str) -> Any:
    """Import "package.module:Class"; the current folder counts, as for a script there."""
    module, _, name = text.partition(":")
    sys.path.insert(0, "")
    try:
        found = importlib.import_module(module)
    except _FAULTS as error:
        raise ConfigError(
            f"loss {text!r}: the module {module!r} cannot be imported ({type(error).__name__}: "
            f"{error}). It must be installed or lie in the current folder."
        ) from error
    finally:
        sys.path.remove("")
    if not hasattr(found, name):
        raise ConfigError(f"loss {text!r}: the module {module!r} has no {name!r}.")
    return getattr(found, name)


def _described(given: object) -> str:
    return f"{type(given).__name__} {given!r}"[:100]
