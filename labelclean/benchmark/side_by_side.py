"""Every loss and every strategy side by side: the same network, features and labels."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelclean import losses
from labelclean.benchmark.metrics import average_precision
from labelclean.benchmark.papers.against import finite_or_none
from labelclean.benchmark.papers.grid import Cell
from labelclean.benchmark.papers.table import Found, mean_and_deviation, table_line
from labelclean.data.manifest import Manifest
from labelclean.data.opening import open_manifest
from labelclean.errors import ConfigError, DataError
from labelclean.options import silent
from labelclean.outputs.truth import UNKNOWN, read_truth
from labelclean.recipe import Recipe
from labelclean.strategies import PLAIN_STRATEGY, STRATEGIES, build_strategy
from labelclean.training.fit import Fitter
from labelclean.training.runtime import Runtime
from labelclean.training.samples import Samples
from labelclean.training.selection import select_samples, settle_training
from labelclean.workflows.fitting import make_fitter, require_fit
from labelclean.workflows.observe import look, prepare

TRUE_RATE = "=rate"
"""In a method: the share of wrong labels, for one that the papers tell it."""
_TOLD = {"co_teaching": f":forget{TRUE_RATE}"}
SIDE_MEASURES = {"accuracy": "accuracy", "ap": "AP"}
"""What is measured, and what it is called in the table."""


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """The same samples with one column of labels; n of M are trained on.

    Args:
        name: The column.
        manifest: All rows.
        samples: Those that can be read.
        true: (M,) their true labels, UNKNOWN where there is none.
    """

    name: str
    manifest: Manifest
    samples: Samples
    true: NDArray[np.int64]

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """(n,) whether a label is known to be wrong."""
        n = self.samples.trained
        wrong: NDArray[np.bool_] = (self.samples.label != self.true)[:n] & self.known[:n]
        return wrong

    @property
    def known(self) -> NDArray[np.bool_]:
        """(M,) whether the truth is known."""
        known: NDArray[np.bool_] = self.true != UNKNOWN
        return known

    @property
    def rate(self) -> float:
        """Share of wrong labels among those trained on whose truth is known."""
        return float(self.wrong.sum() / max(1, int(self.known[: self.samples.trained].sum())))


def all_methods() -> list[str]:
    """List every loss in plain training, then cross entropy by every strategy."""
    named = [name for name in STRATEGIES if name != PLAIN_STRATEGY]
    return [*losses.LOSSES, *(f"cce@{name}{_TOLD.get(name, '')}" for name in named)]


def open_columns(
    path: str, settings: Recipe, truth_col: str, names: Sequence[str]
) -> list[LabelColumn]:
    """Read the same samples once for every column of labels.

    Args:
        path: The manifest.
        settings: The recipe.
        truth_col: Column with the true labels.
        names: Columns of labels.

    Raises:
        DataError: The manifest cannot be read, or has nothing to measure accuracy on.
    """
    columns, scan = [], None
    for name in names:
        manifest = open_manifest(path, replace(settings.data, label_col=name))
        truth = read_truth(manifest, truth_col)
        scan = look(manifest, settings.data, silent) if scan is None else scan
        samples, _ = select_samples(manifest, scan, settings.data)
        column = LabelColumn(name, manifest, samples, truth.label[samples.rows])
        if not column.known[samples.trained :].any():
            raise DataError(
                f"{manifest.source}: no row of split 'test' or 'val' has a true label in "
                f"{truth_col!r}; accuracy is measured on such rows."
            )
        columns.append(column)
    return columns


def cell_recipe(cell: Cell, recipe: Recipe, column: LabelColumn, runtime: Runtime) -> Recipe:
    """Put a cell's method over a recipe, and settle its training."""
    told = replace(cell, loss=cell.loss.replace(TRUE_RATE, f"={column.rate:.4f}"))
    chosen = told.recipe(recipe)
    return replace(chosen, training=settle_training(chosen.training, column.samples, runtime))


def refusal(cell: Cell, recipe: Recipe, column: LabelColumn, runtime: Runtime) -> str | None:
    """Say why a cell cannot work; None: it can."""
    try:
        chosen = cell_recipe(cell, recipe, column, runtime)
        prepare(chosen)
        require_fit(chosen, (column.samples.trained, column.samples.num_classes))
    except ConfigError as error:
        return str(error)
    return None


class SideBySide:
    """Trains one cell after the other on inputs that are made ready once.

    Args:
        columns: The samples, by column of labels.
        recipe: The settings; a cell puts its method over them.
        runtime: Where to compute; its seed is replaced by the cell's.
        cache: Folder of the feature cache.
    """

    def __init__(
        self, columns: Sequence[LabelColumn], recipe: Recipe, runtime: Runtime, cache: Path
    ) -> None:
        self.columns = {column.name: column for column in columns}
        self.recipe, self.runtime, self.cache = recipe, runtime, cache
        self._first: Fitter | None = None

    def measure(self, cell: Cell) -> dict[str, float | None]:
        """Train a cell; give its test accuracy, the AP of 1 - p(given), and the seconds."""
        column = self.columns[cell.noise]
        recipe = cell_recipe(cell, self.recipe, column, self.runtime)
        if self._first is None:
            self._first = make_fitter(column.samples, recipe, self.runtime, self.cache, None)
        first = self._first
        first.runtime = replace(self.runtime, seed=cell.seed)
        first.training = recipe.training
        first.strategy = partial(build_strategy, recipe.strategy.name, **recipe.strategy.params)
        fitter = first.again(column.samples, "cell")
        began = time.perf_counter()
        fitted = fitter.fit(losses.build(recipe.loss.name, **recipe.loss.params))
        n, label = column.samples.trained, column.samples.label
        known, said = column.known, fitted.records.probs
        doubt = 1 - said[np.arange(n), label[:n]].astype(np.float64)
        hits = fitted.other_probs.argmax(axis=1) == column.true[n:]
        return {
            "accuracy": float(hits[known[n:]].mean()),
            "ap": finite_or_none(average_precision(column.wrong[known[:n]], doubt[known[:n]])),
            "seconds": time.perf_counter() - began,
        }


def side_table(found: Found, methods: Sequence[str], columns: Sequence[str]) -> str:
    """Give a Markdown table: a line a method, mean (standard deviation) over the seeds.

    Args:
        found: Finished cells.
        methods: In this order.
        columns: Columns of labels, in this order.
    """
    heads = ["method", *(f"{name}: {text}" for name in columns for text in SIDE_MEASURES.values())]
    lines = [table_line([*heads, "seconds"]), "|" + "---|" * (len(heads) + 1)]
    for method in methods:
        own = [(cell, content["measures"]) for cell, content in found if cell.loss == method]
        if not own:
            continue
        cells = [
            mean_and_deviation([values.get(key) for cell, values in own if cell.noise == name])
            for name in columns
            for key in SIDE_MEASURES
        ]
        spent = float(np.mean([values["seconds"] for _, values in own]))
        lines.append(table_line([method, *cells, f"{spent:.1f}"]))
    return "\n".join(lines) + "\n"
