"""Conditions for --fail-on: a number of run.json compared with a limit."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from labelclean.catalogue import unknown_name
from labelclean.errors import ConfigError

_FORM = re.compile(r"\s*([a-z_]+)\s*(>=|<=|>|<)\s*([0-9.]+)\s*(%?)\s*")
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_COUNTED = ("flagged", "relabel", "review", "drop", "unreadable")


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition.

    Args:
        text: As the user wrote it.
        name: `noise`, or a count of run.json.
        compare: How to compare.
        limit: With what; a share of the audited rows where `share` is True.
        share: Whether the limit is a share.
    """

    text: str
    name: str
    compare: str
    limit: float
    share: bool

    def verdict(self, facts: Mapping[str, object]) -> dict[str, object]:
        """Give what was measured and whether the condition holds, as --json has it."""
        return {
            "condition": self.text,
            "measured": self.measured(facts),
            "holds": self.holds(facts),
        }

    def measured(self, facts: Mapping[str, object]) -> float | None:
        """Give the number of run.json that is compared; None: there is no estimate."""
        if self.name == "noise":
            rate = facts["noise_rate"]
            return rate if isinstance(rate, float) else None
        counts = facts["counts"]
        if not isinstance(counts, Mapping):
            raise TypeError("run.json holds no counts")
        value = float(counts[self.name])
        return value / max(float(counts["audited"]), 1.0) if self.share else value

    def holds(self, facts: Mapping[str, object]) -> bool:
        """Tell whether the condition holds for what run.json says."""
        value = self.measured(facts)
        # Without an estimate nobody can say that the noise is low: fail.
        return value is None or _COMPARE[self.compare](value, self.limit)


def parse_gate(text: str) -> Gate:
    """Read a condition such as "noise>2%" or "flagged>100".

    Raises:
        ConfigError: It is not of that form.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise ConfigError(f'--fail-on {text!r} is no condition; write one like "noise>2%".')
    name, compare, number, percent = found.groups()
    if name != "noise" and name not in _COUNTED:
        raise unknown_name("--fail-on name", name, ("noise", *_COUNTED))
    try:
        limit = float(number)
    except ValueError as error:
        raise ConfigError(f"--fail-on {text!r}: {number!r} is no number.") from error
    return Gate(text, name, compare, limit / 100 if percent else limit, bool(percent))
