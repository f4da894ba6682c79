"""Every exception labelclean raises on purpose, each with its exit code."""

from collections.abc import Iterable


class LabelCleanError(Exception):
    """Root of the tree: the run failed for a reason we can name."""

    exit_code = 1


class ConfigError(LabelCleanError, ValueError):
    """Wrong usage: an unknown name, a parameter out of range, a recipe that does not add up."""

    exit_code = 2


class DataError(LabelCleanError, ValueError):
    """The input data cannot be used as it is: a manifest, an image, an array."""

    exit_code = 3


class TrainingError(LabelCleanError, RuntimeError):
    """Training cannot go on, for example after a non-finite loss."""


class OutputError(LabelCleanError, RuntimeError):
    """A result could not be written; nothing half-written is left behind."""


def brief(text: str, longest: int = 300) -> str:
    """Cut text that is too long for a message: a cell may hold a million characters."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}... ({len(text)} characters)"


def shortlist(items: Iterable[object], limit: int = 10) -> str:
    """Join the first items for a message and count the rest, so that no message floods a screen."""
    listed = [brief(str(item)) for item in items]
    shown = ", ".join(listed[:limit])
    return shown if len(listed) <= limit else f"{shown} and {len(listed) - limit} more"
