"""`audit` and `open_run` for notebooks: what the commands do, on what a program holds."""

import logging
import os
import tempfile
from collections.abc import Sequence
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
from labelclean.options import OpenProgress, RunOptions, progress_bar
from labelclean.recipe import Recipe, change_recipe, flag_overrides, load_recipe
from labelclean.runs.compare import compare_runs, read_earlier
from labelclean.runs.folder import RunFolder
from labelclean.runs.reading import read_facts
from labelclean.workflows.audit import default_folder, run_audit
from labelclean.workflows.finished import FinishedRun
from labelclean.workflows.inputs import SideInputs
from labelclean.workflows.rounds import follow_up

PathText = str | os.PathLike[str]
_log = logging.getLogger("labelclean")


def audit(  # noqa: PLR0913 (one keyword for every flag of the command)
    source: Any,
    out: PathText | None = None,
    recipe: str | Path | Recipe | None = None,
    *,
    set: Sequence[str] = (),
    loss: str | None = None,
    backbone: str | None = None,
    mode: str | None = None,
    epochs: int | None = None,
    evidence: str | Sequence[str] | None = None,
    features: PathText | np.ndarray | None = None,
    pred_probs: PathText | np.ndarray | None = None,
    truth_col: str | None = None,
    decisions: PathText | None = None,
    baseline: PathText | None = None,
    audit_split: str | None = None,
    retrain: bool = False,
    rounds: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    image_col: str | None = None,
    label_col: str | None = None,
    image_root: PathText | None = None,
    allow_outside_root: bool = False,
    limit: int | None = None,
    workers: int | None = None,
    threads: int | None = None,
    device: str = "auto",
    seed: int = 0,
    cache_dir: PathText | None = None,
    no_cache: bool = False,
    progress: bool | OpenProgress | None = None,
) -> FinishedRun:
    """Audit samples into a run folder: what `labelclean audit` does, a keyword for every flag.

    Args:
        source: A path (table or folder of images), a DataFrame, a pair (X, y), a torch Dataset or
            a Hugging Face Dataset. What is not a path is kept in the run folder.
        out: The run folder; None: NAME-audit in the current folder.
        recipe: A shipped recipe's name, a .toml file, or settings; None: the defaults.
        set: Changes of single settings, "section.key=value".
        loss: Loss to train with.
        backbone: Network that looks at the pictures.
        mode: `head`, `finetune` or `scratch`.
        epochs: How often every sample is seen.
        evidence: Sources that may speak.
        features: (N, D) features, or an .npy file; no pictures are needed.
        pred_probs: (N, C) out-of-sample probabilities, or an .npy file; nothing is trained.
        truth_col: Column of true labels, only to compare with.
        decisions: decisions.jsonl of people who looked at these rows; they are believed.
        baseline: Earlier run to compare with; see `changes` of the run.
        audit_split: Audit the rows of this held-out split too.
        retrain: Train on the corrected labels afterwards.
        rounds: Audit the corrected labels again, at most so many rounds; implies retrain.
        resume: Go on with a run that did not end.
        overwrite: Replace the run in the folder.
        image_col: Column with the image path or bytes.
        label_col: Column with the label.
        image_root: Folder relative paths start from.
        allow_outside_root: Accept paths that leave that folder.
        limit: Read only so many rows.
        workers: Processes that decode images; 0: none.
        threads: Threads for the arithmetic.
        device: `auto`, `cpu`, `cuda` or `mps`.
        seed: Seed of every draw.
        cache_dir: Folder of the feature cache.
        no_cache: Neither read nor write the cache.
        progress: True shows bars on the error stream, None only on a terminal; or what opens one.

    Raises:
        LabelCleanError: See the error's own words.
    """
    named = evidence.split(",") if isinstance(evidence, str) else evidence
    flags = {
        "loss.name": loss,
        "model.backbone": backbone,
        "training.mode": mode,
        "training.epochs": epochs,
        "evidence.sources": None if named is None else list(named),
        "data.audit_split": audit_split,
        "data.image_col": image_col,
        "data.label_col": label_col,
        "data.image_root": None if image_root is None else os.fspath(image_root),
        "data.allow_outside_root": allow_outside_root or None,
        "data.limit": limit,
        "data.workers": workers,
    }
    base = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    settings = change_recipe(base, (*flag_overrides(flags), *set))
    options = RunOptions(
        device=device,
        threads=threads,
        cache=None if cache_dir is None else Path(cache_dir),
        no_cache=no_cache,
        progress=progress if callable(progress) else partial(progress_bar, shown=progress),
        log=_log.info,
    )
    earlier = None if baseline is None else read_earlier(Path(baseline))
    folder = _folder(source, out)
    start = partial(
        run_audit, out=folder, seed=seed, options=options, resume=resume, overwrite=overwrite
    )
    with tempfile.TemporaryDirectory(prefix="labelclean-") as name:
        desk = Path(name)
        side = SideInputs(
            features=_matrix_file(features, desk / "features.npy"),
            pred_probs=_matrix_file(pred_probs, desk / "pred_probs.npy"),
            truth_col=truth_col,
            decisions=None if decisions is None else Path(decisions),
        )
        if resume and RunFolder(folder).complete:
            return FinishedRun(folder, read_facts(folder))
        if isinstance(source, str | os.PathLike):
            path: Path = Path(source)
            run = start(path, recipe=settings, side=side)
        else:
            RunFolder(folder).check(resume=resume, overwrite=overwrite)
            manifest, held, settings = _held(source, desk, folder, settings, side)
            path = manifest.source
            run = start(manifest, recipe=settings, side=replace(side, held=held))
    if run is None:
        raise RuntimeError("this process does not lead; call run_audit in a distributed job")
    if retrain or rounds > 1:
        follow_up(
            path, folder, settings, rounds=rounds, decisions=side.decisions, seed=seed,
            options=options,
        )  # fmt: skip
    changes = None if earlier is None else compare_runs(earlier, run.audit)
    return FinishedRun(folder, run.facts, run.audit, changes)


def open_run(folder: PathText) -> FinishedRun:
    """Open the folder of a finished audit.

    Raises:
        DataError: There is none, or it is damaged.
    """
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
