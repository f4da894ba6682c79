"""The rows of a run, to be filtered, ordered and shown a page at a time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from labelclean.correction.kinds import OUTLIERS, rows_on_lists
from labelclean.runs.issues import beside_columns

_ROW_NUMBER = re.compile(r"row (\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows somebody wants to see.

    Args:
        given: Given labels, any of them; empty: all.
        suggested: Suggested labels, any of them; empty: all.
        action: Actions, any of them; empty: all.
        least: Least p_error.
        largest: Largest p_error.
        text: Text that the sample id, the path, a label or the reason contains, whatever its case;
            "row 12" also finds the rows whose number begins so.
        decided: Only rows with a decision, or only those without; None: all.
        finding: Only rows on this list: outliers, duplicates or leaks; None: all.
    """

    given: Sequence[str] = ()
    suggested: Sequence[str] = ()
    action: Sequence[str] = ()
    least: float | None = None
    largest: float | None = None
    text: str = ""
    decided: bool | None = None
    finding: str | None = None


class ReviewRows:
    """The M lines of issues.parquet.

    Args:
        table: issues.parquet.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table.combine_chunks()
        self.row: NDArray[np.int64] = table["row"].to_numpy()
        self.p_error = _floats(table["p_error"])
        self.given, self.given_names = _words(table["label_given"])
        self.suggested, self.suggested_names = _words(table["label_suggested"])
        self.action_code, self.actions = _words(table["action"])
        self._reason, self._reasons = _words(table["reason"])
        beside = beside_columns(table)
        self.group, self.leaks_to = beside["duplicate_group"], beside["leaks_to"]
        self.lists = rows_on_lists(beside)
        self._place = np.full(int(self.row.max(initial=-1)) + 1, -1, dtype=np.int64)
        self._place[self.row] = np.arange(len(self.row))

    def __len__(self) -> int:
        return len(self.row)

    @property
    def action(self) -> NDArray[np.object_]:
        """(M,) text, what the run decided."""
        return np.array(self.actions, dtype=object)[self.action_code]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """(M,) a column of numbers, NaN for null."""
        return _floats(self.table[name])

    def position(self, row: int) -> int | None:
        """Give the line about a row of the input; None if it was not audited."""
        if not 0 <= row < len(self._place) or self._place[row] < 0:
            return None
        return int(self._place[row])

    def shown(self, row: int) -> bool:
        """Say whether a row may be looked at: it was audited, or shows what such a row shows."""
        return self.position(row) is not None or bool((self.leaks_to == row).any())

    def in_order(self, finding: str) -> NDArray[np.int64]:
        """(M,) lines in the order that suits a list: surest outliers first, copies together."""
        if finding == OUTLIERS:
            return np.argsort(-np.nan_to_num(self.numbers("p_outlier")), kind="stable")
        return np.lexsort((self.row, self.group))

    def select(
        self, wanted: Wanted, p_error: NDArray[np.float64], decided: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """(M,) the lines that are wanted.

        Args:
            wanted: Which.
            p_error: (M,) what to compare with the least and the largest.
            decided: (M,) lines with a decision.
        """
        keep = np.ones(len(self), dtype=bool)
        for names, known, codes in (
            (wanted.given, self.given_names, self.given),
            (wanted.suggested, self.suggested_names, self.suggested),
            (wanted.action, self.actions, self.action_code),
        ):
            if names:
                keep &= np.isin(codes, [at for at, name in enumerate(known) if name in set(names)])
        if wanted.least is not None:
            keep &= p_error >= wanted.least
        if wanted.largest is not None:
            keep &= p_error <= wanted.largest
        if wanted.decided is not None:
            keep &= decided == wanted.decided
        if wanted.finding is not None:
            keep &= self.lists[wanted.finding]
        if wanted.text:
            keep &= self._mentions(wanted.text)
        return keep

    def _mentions(self, text: str) -> NDArray[np.bool_]:
        found = np.zeros(len(self), dtype=bool)
        for name in ("sample_id", "path"):
            hits = pc.match_substring(self.table[name], text, ignore_case=True)
            found |= hits.fill_null(False).to_numpy().astype(bool)
        for names, codes in (
            (self.given_names, self.given),
            (self.suggested_names, self.suggested),
            (self._reasons, self._reason),
        ):
            hits = [at for at, name in enumerate(names) if text.casefold() in name.casefold()]
            found |= np.isin(codes, hits)
        number = _ROW_NUMBER.fullmatch(text)
        if number is not None:
            found |= pc.starts_with(self.table["row"].cast(pa.string()), number[1]).to_numpy()
        return found


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    values = column.cast(pa.float64()).to_numpy()
    return np.array(values, dtype=np.float64)


def _words(column: pa.ChunkedArray) -> tuple[NDArray[np.int32], list[str]]:
    """Give every line's position in the list of distinct words, and that list."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    coded = column.combine_chunks().dictionary_encode()
    return coded.indices.to_numpy(), [str(name) for name in coded.dictionary.to_pylist()]
