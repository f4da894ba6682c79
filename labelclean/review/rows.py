"""The rows of a run, to be filtered, ordered and shown a page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from labelclean.result import UNREADABLE

Positions = NDArray[np.int64]
NUMBERS = ("p_given", "p_suggested", "attention", "target_given", "margin", "neighbour_agreement")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows somebody wants to see.

    Args:
        given: Given labels, any of them; empty: all.
        suggested: Suggested labels, any of them; empty: all.
        action: Actions, any of them; empty: all.
        least: Least p_error.
        largest: Largest p_error.
        text: Text that the sample id, the path or a label contains, whatever its case.
        decided: Only rows with a decision, or only those without; None: all.
    """

    given: Sequence[str] = ()
    suggested: Sequence[str] = ()
    action: Sequence[str] = ()
    least: float | None = None
    largest: float | None = None
    text: str = ""
    decided: bool | None = None


class Rows:
    """The M lines of issues.parquet.

    Args:
        table: issues.parquet.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table.combine_chunks()
        self.row: NDArray[np.int64] = table["row"].to_numpy()
        self.p_error = _floats(table["p_error"])
        self.given, self.given_names = _words(table["label_given"])
        self.suggested, self.suggested_names = _words(table["label_suggested"])
        self._action, self.actions = _words(table["action"])
        self._place = np.full(int(self.row.max(initial=-1)) + 1, -1, dtype=np.int64)
        self._place[self.row] = np.arange(len(self.row))

    def __len__(self) -> int:
        return len(self.row)

    @property
    def action(self) -> NDArray[np.object_]:
        """(M,) text, what the run decided."""
        return np.array(self.actions, dtype=object)[self._action]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """(M,) a column of numbers, NaN for null."""
        return _floats(self._table[name])

    def position(self, row: int) -> int | None:
        """Give the line about a row of the input; None if it was not audited."""
        if not 0 <= row < len(self._place) or self._place[row] < 0:
            return None
        return int(self._place[row])

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
            (wanted.action, self.actions, self._action),
        ):
            if names:
                keep &= np.isin(codes, [at for at, name in enumerate(known) if name in set(names)])
        if wanted.least is not None:
            keep &= p_error >= wanted.least
        if wanted.largest is not None:
            keep &= p_error <= wanted.largest
        if wanted.decided is not None:
            keep &= decided == wanted.decided
        if wanted.text:
            keep &= self._mentions(wanted.text)
        return keep

    def _mentions(self, text: str) -> NDArray[np.bool_]:
        found = np.zeros(len(self), dtype=bool)
        for name in ("sample_id", "path"):
            hits = pc.match_substring(self._table[name], text, ignore_case=True)
            found |= hits.fill_null(False).to_numpy().astype(bool)
        for names, codes in (
            (self.given_names, self.given),
            (self.suggested_names, self.suggested),
        ):
            hits = [at for at, name in enumerate(names) if text.casefold() in name.casefold()]
            found |= np.isin(codes, hits)
        return found

    def show(
        self, positions: Positions, p_error: NDArray[np.float64], *, pictures: bool
    ) -> list[dict[str, object]]:
        """Give some lines as plain data.

        Args:
            positions: (k,) which.
            p_error: (M,) what to show as such.
            pictures: Whether the run has pictures.
        """
        lines = self._table.take(pa.array(positions)).to_pylist()
        shown = []
        for line, at in zip(lines, positions.tolist(), strict=True):
            number = line["row"]
            seen = pictures and line["action"] != UNREADABLE
            error = float(p_error[at])
            shown.append(
                {
                    "row": number,
                    "rank": line["rank"],
                    "sample_id": line["sample_id"],
                    "path": line["path"],
                    "given": str(line["label_given"]),
                    "suggested": str(line["label_suggested"]),
                    "action": line["action"],
                    "p_error": None if np.isnan(error) else error,
                    **{name: line[name] for name in NUMBERS},
                    "reason": line["reason"],
                    "picture": f"thumb/{number}" if seen else None,
                    "full": f"image/{number}" if seen else None,
                }
            )
        return shown


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    values = column.cast(pa.float64()).to_numpy()
    return np.array(values, dtype=np.float64)


def _words(column: pa.ChunkedArray) -> tuple[NDArray[np.int32], list[str]]:
    """Give every line's position in the list of distinct words, and that list."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    coded = column.combine_chunks().dictionary_encode()
    return coded.indices.to_numpy(), [str(name) for name in coded.dictionary.to_pylist()]
