"""Finished cells on disk: one experiment is one folder, and every cell in it appears whole."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from labelclean.atomic import write_bytes
from labelclean.benchmark.papers.cell import CellFinding
from labelclean.benchmark.papers.grid import Cell
from labelclean.errors import ConfigError
from labelclean.runs.folder import changed_settings

STUDY, CELLS = "study.json", "cells"


class Store:
    """The folder of an experiment; several processes may fill it with different cells.

    Args:
        folder: Where it is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.cells = folder, folder / CELLS

    def claim(self, settings: Mapping[str, object]) -> None:
        """Begin an experiment, or go on with one of the same settings.

        Raises:
            ConfigError: The folder holds another experiment, or something else.
        """
        path = self.folder / STUDY
        plain = json.loads(json.dumps(settings, default=str))
        if path.is_file():
            changed = changed_settings(json.loads(path.read_text(encoding="utf-8")), plain)
            if changed:
                raise ConfigError(
                    f"{self.folder} holds an experiment with other settings "
                    f"({', '.join(changed)}). Use those again, or another --out."
                )
            return
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise ConfigError(f"--out {self.folder} is in use; give a new or empty folder.")
        self.cells.mkdir(parents=True, exist_ok=True)
        write_bytes(path, _json(plain))

    def finished(self, cell: Cell) -> dict[str, Any] | None:
        """Give what a finished cell measured; None if it is still to be done."""
        path = self.cells / f"{cell.name}.json"
        if not path.is_file():
            return None
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content

    def save(self, cell: Cell, finding: CellFinding) -> None:
        """Write a cell; the file with its measures comes last and marks it finished."""
        buffer = io.BytesIO()
        pq.write_table(finding.samples, buffer)
        write_bytes(self.cells / f"{cell.name}.parquet", buffer.getvalue())
        self._write(cell, finding.measures, finding.curves)

    def add(self, cell: Cell, measures: Mapping[str, float | None]) -> None:
        """Add measures to a finished cell."""
        found = self.finished(cell) or {"measures": {}, "curves": {}}
        self._write(cell, {**found["measures"], **measures}, found["curves"])

    def _write(
        self, cell: Cell, measures: Mapping[str, object], curves: Mapping[str, object]
    ) -> None:
        content = {
            "loss": cell.loss,
            "noise": cell.noise,
            "seed": cell.seed,
            "measures": measures,
            "curves": curves,
        }
        write_bytes(self.cells / f"{cell.name}.json", _json(content))

    def samples(self, cell: Cell) -> pa.Table:
        """Read what a finished cell said about its rows."""
        return pq.read_table(self.cells / f"{cell.name}.parquet")

    def everything(self) -> list[tuple[Cell, dict[str, Any]]]:
        """Read all finished cells, whoever made them, by noise, loss and seed."""
        found = []
        for path in self.cells.glob("*.json"):
            content = json.loads(path.read_text(encoding="utf-8"))
            cell = Cell(content["loss"], content["noise"], content["seed"])
            found.append((cell, content))
        return sorted(found, key=lambda pair: (pair[0].noise, pair[0].loss, pair[0].seed))


def _json(content: object) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
