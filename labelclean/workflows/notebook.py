"""`audit` and `open_run` for notebooks: what the commands do, on what a program holds."""

import os
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from labelclean.data.in_memory import hold_samples, root_of_paths
from labelclean.data.manifest import Manifest
from labelclean.data.opening import open_manifest
from labelclean.errors import ConfigError
from labelclean.models.own import backbone_name
from labelclean.options import PathText
from labelclean.recipe import Recipe, load_recipe
from labelclean.runs.compare import compare_runs, read_earlier
from labelclean.runs.folder import RunFolder
from labelclean.runs.reading import read_facts
from labelclean.workflows.audit import audit_lock, default_folder, run_audit
from labelclean.workflows.audit_flags import audit_flags, signature_with_flags
from labelclean.workflows.finished import FinishedRun
from labelclean.workflows.inputs import SideInputs
from labelclean.workflows.rounds import follow_up


def audit(
    source: Any,
    out: PathText | None = None,
    recipe: str | Path | Recipe | None = None,
    **flags: Any,
) -> FinishedRun:
    """Audit samples into a run folder: what `labelclean audit` does, a keyword for every flag.

    Args:
        source: A path (table or folder of images), a DataFrame, a pair (X, y), a torch Dataset or
            a Hugging Face Dataset. What is not a path is kept in the run folder.
        out: The run folder; None: NAME-audit in the current folder.
        recipe: A shipped recipe's name, a .toml file, or settings; None: the defaults.
        flags: See `AuditFlags`: label_col, loss, mode, features, overwrite, progress, ...

    Raises:
        LabelCleanError: See the error's own words.
    """
    asked = audit_flags(flags)
    settings = asked.over(recipe if isinstance(recipe, Recipe) else load_recipe(recipe))
    options = asked.options()
    earlier = None if asked.baseline is None else read_earlier(Path(asked.baseline))
    folder = _folder(source, out)
    if asked.resume and RunFolder(folder).complete:
        return FinishedRun(folder, read_facts(folder))
    start = partial(
        run_audit,
        out=folder,
        seed=asked.seed,
        options=options,
        resume=asked.resume,
        overwrite=asked.overwrite,
    )
    with tempfile.TemporaryDirectory(prefix="labelclean-") as name, audit_lock(folder, options):
        desk = Path(name)
        side = SideInputs(
            features=_matrix_file(asked.features, desk / "features.npy"),
            pred_probs=_matrix_file(asked.pred_probs, desk / "pred_probs.npy"),
            truth_col=asked.truth_col,
            decisions=None if asked.decisions is None else Path(asked.decisions),
            baseline=earlier,
        )
        path = source
        if isinstance(source, str | os.PathLike):
            run = start(os.fspath(source), recipe=settings, side=side)
        else:
            RunFolder(folder).check(resume=asked.resume, overwrite=asked.overwrite)
            manifest, held, settings = _held(source, desk, folder, settings, side)
            path = manifest.source
            run = start(manifest, recipe=settings, side=replace(side, held=held))
        if run is None:
            raise RuntimeError("this process does not lead; call run_audit in a distributed job")
        if asked.retrain or asked.rounds > 1:
            again = partial(follow_up, rounds=asked.rounds, decisions=side.decisions)
            again(path, folder, settings, seed=asked.seed, options=options)
    changes = None if earlier is None else compare_runs(earlier, read_earlier(folder))
    return FinishedRun(folder, run.facts, run.audit, changes)


audit.__signature__ = signature_with_flags(audit)  # type: ignore[attr-defined]


def open_run(folder: PathText, *, backbone: Any = None) -> FinishedRun:
    """Open the folder of a finished audit.

    Args:
        folder: The run folder.
        backbone: The network of a run that was given one of the user's own; `predict` and
            `retrain` use it.

    Raises:
        DataError: There is none, or it is damaged.
        ConfigError: The network cannot be used.
    """
    if backbone is not None:
        backbone_name(backbone)
    place = Path(folder)
    return FinishedRun(place, read_facts(place))


def _folder(source: Any, out: PathText | None) -> Path:
    if out is not None:
        return Path(out)
    return default_folder(source if isinstance(source, str | os.PathLike) else "dataset")


def _matrix_file(given: PathText | np.ndarray | None, target: Path) -> Path | None:
    if given is None or isinstance(given, str | os.PathLike):
        return None if given is None else Path(given)
    if not hasattr(given, "__array__"):
        raise ConfigError(
            f"{target.stem} is {type(given).__name__}; give an array or the name of an .npy file."
        )
    np.save(target, np.asarray(given), allow_pickle=False)
    return target


def _held(
    source: Any, desk: Path, folder: Path, recipe: Recipe, side: SideInputs
) -> tuple[Manifest, Path, Recipe]:
    """Write samples as a file and read it; it will stand in the run folder."""
    data = recipe.data
    held = hold_samples(source, desk, image_col=data.image_col, label_col=data.label_col)
    if held.suffix == ".parquet" and data.image_root is None:
        root = root_of_paths(pq.read_table(held), data.image_col)
        data = replace(data, image_root=str(root))
    alone = side.features is None and side.pred_probs is None
    manifest = open_manifest(held, data, need_images=alone)
    return replace(manifest, source=folder / held.name), held, replace(recipe, data=data)
