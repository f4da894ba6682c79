"""What cannot work together is refused before anything is spent."""

from labelclean.errors import ConfigError
from labelclean.losses import RobustLoss
from labelclean.strategies.base import ROW_INPUTS, ROW_TARGETS, Setting, Strategy

PLAIN_STRATEGY = "plain"


def require_companions(
    name: str, strategy: Strategy, loss_name: str, loss: RobustLoss, accumulate: int = 1
) -> None:
    """Refuse a loss, or batches in parts, that a strategy cannot work with.

    Raises:
        ConfigError: They do not fit.
    """
    if not strategy.by_step:
        return
    if accumulate > 1:
        raise ConfigError(
            f"strategy {name!r} looks at whole batches and training.accumulate is {accumulate}; "
            "set training.accumulate=1, and training.batch_size lower if memory is short."
        )
    if not loss.per_sample:
        raise ConfigError(
            f"strategy {name!r} weighs single rows and loss {loss_name!r} has one value for a "
            "whole batch; choose another loss, such as cce, or --strategy plain."
        )
    changed = strategy.changes & {ROW_TARGETS, ROW_INPUTS} or strategy.networks > 1
    if loss.memory_shape and changed:
        what = "trains several networks" if strategy.networks > 1 else "changes targets or inputs"
        raise ConfigError(
            f"strategy {name!r} {what} and loss {loss_name!r} keeps a memory of its own "
            f"({loss.memory_shape}); the two would work against each other. Choose a loss without "
            "memory, such as cce or gce, or --strategy plain."
        )


def require_setting(name: str, strategy: Strategy, setting: Setting) -> None:
    """Refuse a strategy that cannot work on this data with this training.

    Raises:
        ConfigError: It cannot.
    """
    reason = strategy.unfit(setting)
    if reason is not None:
        raise ConfigError(f"strategy {name!r} cannot work here: {reason}.")
