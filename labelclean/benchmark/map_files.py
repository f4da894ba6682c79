"""Files that say how noise should look: class pairs, transition matrices, probabilities."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labelclean.catalogue import nearest_name
from labelclean.errors import ConfigError, DataError, shortlist

HEADER = ["from", "to"]


def read_pairs(path: Path) -> dict[str, str]:
    """Read which class is mistaken for which.

    Args:
        path: .json with one object of names to names, or .csv or .tsv with two columns, with or
            without the header from,to.

    Returns:
        Class to the class it is mistaken for, as text.

    Raises:
        ConfigError: The file cannot be read as pairs, or names a class twice.
    """
    if path.suffix.lower() == ".json":
        pairs = _json_pairs(path)
    else:
        rows = _rows(path)
        if rows and [cell.strip().lower() for cell in rows[0][1]] == HEADER:
            rows = rows[1:]
        wrong = [f"line {line} has {len(row)} cells" for line, row in rows if len(row) != 2]
        if wrong:
            raise ConfigError(
                f"{path}: {shortlist(wrong)}; a map has two columns, a class and the class it is "
                "mistaken for."
            )
        pairs = [(row[0], row[1]) for _, row in rows]
    if not pairs:
        raise ConfigError(f"{path} names no pair of classes.")
    names = [name for name, _ in pairs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ConfigError(
            f"{path} gives several counterparts for {shortlist(map(repr, repeated))}; "
            "give one each, or use --noise matrix."
        )
    return dict(pairs)


def _json_pairs(path: Path) -> list[tuple[str, str]]:
    try:
        # As a list of pairs, so that a name given twice is seen instead of lost.
        pairs = json.loads(_text(path), object_pairs_hook=list)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(pairs, list) or not all(
        isinstance(pair, tuple) and type(pair[1]) in (str, int) for pair in pairs
    ):
        raise ConfigError(f'{path} must be one object of names to names, such as {{"cat": "dog"}}.')
    return [(name, str(other)) for name, other in pairs]


def read_transition(path: Path, classes: Sequence[object]) -> np.ndarray:
    """Read a transition matrix; whether its rows are distributions is checked where it is used.

    Args:
        path: .npy of shape (C, C) in class order; or .csv or .tsv, either bare numbers in class
            order, or with class names in the first row and first column, in any order.
        classes: (C,) class labels in the order used for the label codes.

    Returns:
        (C, C) in class order.

    Raises:
        ConfigError: The file cannot be read as numbers, or its names are not the classes.
    """
    if path.suffix.lower() == ".npy":
        try:
            return load_array(path)
        except DataError as error:
            raise ConfigError(str(error)) from error
    rows = [row for _, row in _rows(path)]
    names = [str(name) for name in classes]
    if not rows or not _is_named(rows, names):
        return _numbers(path, rows)
    heads = {"columns": rows[0][1:], "rows": [row[0] for row in rows[1:]]}
    for side, given in heads.items():
        _match_names(path, side, given, names)
    values = _numbers(path, [row[1:] for row in rows[1:]])
    order = [[heads[side].index(name) for name in names] for side in ("rows", "columns")]
    return np.asarray(values[np.ix_(*order)])


def load_array(path: Path) -> np.ndarray:
    """Load an .npy file; files with pickled objects, which could run code, are refused.

    Raises:
        DataError: The file is missing or not such an array.
    """
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"{path} cannot be read as an array ({error}); save plain numbers with numpy.save."
        ) from error
    if not isinstance(values, np.ndarray):
        raise DataError(f"{path} holds several arrays; save one with numpy.save.")
    return values


def _is_named(rows: list[list[str]], names: list[str]) -> bool:
    """Whether the first row and column hold class names: then they have one cell in common."""
    return len(rows) == len(rows[0]) and len(rows) == len(names) + 1


def _match_names(path: Path, side: str, given: list[str], names: list[str]) -> None:
    unknown = [f"{name!r}{nearest_name(name, names)}" for name in given if name not in names]
    missing = [repr(name) for name in names if name not in given]
    if unknown or missing:
        raise ConfigError(
            f"{path}: the names of its {side} are not the data's classes; "
            f"unknown: {shortlist(unknown) or 'none'}; missing: {shortlist(missing) or 'none'}."
        )


def _numbers(path: Path, rows: list[list[str]]) -> np.ndarray:
    widths = sorted({len(row) for row in rows})
    if len(widths) != 1:
        raise ConfigError(f"{path} is no matrix: its rows have {shortlist(widths) or 'no'} cells.")
    try:
        return np.array([[float(cell) for cell in row] for row in rows])
    except ValueError as error:
        raise ConfigError(
            f"{path} is no matrix of numbers ({error}). Write numbers in class order, or class "
            "names in the first row and the first column."
        ) from error


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Give (line, cells) of every line that is not blank."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    reader = csv.reader(io.StringIO(_text(path), newline=""), delimiter=delimiter, strict=True)
    try:
        return [(reader.line_num, row) for row in reader if any(row)]
    except csv.Error as error:
        raise ConfigError(f"{path}, line {reader.line_num} is not valid CSV: {error}.") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8."
        ) from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
