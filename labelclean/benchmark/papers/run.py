"""The grid: every cell that is not finished yet, one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from labelclean import __version__
from labelclean.benchmark.papers.against import rival_measure
from labelclean.benchmark.papers.cell import retrain_cell, run_cell
from labelclean.benchmark.papers.grid import Cell
from labelclean.benchmark.papers.store import Store
from labelclean.benchmark.papers.study import Study
from labelclean.errors import ConfigError
from labelclean.options import RunOptions
from labelclean.recipe import Recipe
from labelclean.training.runtime import Runtime
from labelclean.training.selection import settled_mode
from labelclean.workflows.fitting import require_fit
from labelclean.workflows.observe import AUTO, prepare

RETRAINED = "retrain_final_accuracy"


@dataclass(frozen=True, slots=True)
class Order:
    """What to do.

    Args:
        cells: In this order.
        recipe: The settings of all; each cell puts its own loss over them.
        retrain: Train anew on the corrected labels, too.
        against: Names of rivals.
    """

    cells: Sequence[Cell]
    recipe: Recipe
    retrain: bool = False
    against: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse what cannot work, before anything is spent."""
        for cell in self.cells:
            recipe = cell.recipe(self.recipe)
            if recipe.loss.name == AUTO:
                raise ConfigError("name the losses to compare with --losses, or in the recipe.")
            prepare(recipe)

    def check_fit(self, study: Study, runtime: Runtime) -> None:
        """Refuse a loss or strategy of any cell that cannot work on these samples."""
        manifest, rows = study.manifest, int(study.train.sum())
        features = manifest.arrays is not None and not manifest.has_images
        for cell in self.cells:
            recipe = cell.recipe(self.recipe)
            mode = settled_mode(recipe.training, runtime, features)
            training = recipe.training.resolved(mode, rows, runtime.processes)
            require_fit(replace(recipe, training=training), (rows, len(manifest.classes)))


def settings_of(study: Study, recipe: Recipe) -> dict[str, object]:
    """Give everything the results of an experiment depend on beside its cells."""
    plain = recipe.plain()
    del plain["loss"]
    return {
        "labelclean": __version__,
        "recipe": plain,
        "input": study.manifest.digest,
        "rows_trained": int(study.train.sum()),
        "rows_measured": int(study.evaluation.rows.sum()),
        "truth": study.source,
    }


def run_grid(
    study: Study,
    order: Order,
    store: Store,
    runtime: Runtime,
    options: RunOptions,
    tell: Callable[[Cell, dict[str, float | None]], None],
) -> int:
    """Do what is left to do.

    Args:
        study: What all cells share.
        order: What to do.
        store: Where finished cells are.
        runtime: Where to compute.
        options: Cache, progress and messages.
        tell: Told each cell and its measures when it is finished.

    Returns:
        How many cells had something left to do.
    """
    done = 0
    for cell in order.cells:
        found = store.finished(cell)
        asked = {rival_measure(name) for name in order.against}
        if found is not None and not asked <= found["measures"].keys():
            found = None  # rivals need the features, which are not kept
        if found is None:
            finding = run_cell(study, cell, order.recipe, runtime, options, order.against)
            store.save(cell, finding)
            found = {"measures": finding.measures}
            done += 1
        elif order.retrain and RETRAINED not in found["measures"]:
            done += 1
        else:
            continue
        measures = dict(found["measures"])
        if order.retrain:
            samples = store.samples(cell)
            extra = retrain_cell(study, cell, samples, order.recipe, runtime, options)
            store.add(cell, extra)
            measures |= extra
        tell(cell, measures)
    return done
