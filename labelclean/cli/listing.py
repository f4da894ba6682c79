"""A catalogue on a terminal: its members as a table, their parameters as text."""

import tomllib
from collections.abc import Sequence

from labelclean.errors import ConfigError

Facts = dict[str, object]


def parse_parameter(text: str) -> tuple[str, object]:
    """Read "parameter=value"; the value as TOML, or else as text."""
    key, equals, value = text.partition("=")
    if not (equals and key.strip()):
        raise ConfigError(f"--set {text!r} is not of the form parameter=value.")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def settings_text(parameters: object) -> str:
    """Give parameters and their values in one line."""
    pairs = parameters.items() if isinstance(parameters, dict) else ()
    return ", ".join(f"{key}={value_text(value)}" for key, value in pairs)


def value_text(value: object) -> str:
    """Give a value as short text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value in (None, "") else str(value)


def table_text(table: list[Facts], columns: Sequence[str]) -> str:
    """Give some columns of a table as aligned text."""
    rows = [tuple(columns)] + [
        tuple(
            settings_text(facts[column]) if column == "parameters" else value_text(facts[column])
            for column in columns
        )
        for facts in table
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(len(columns))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
