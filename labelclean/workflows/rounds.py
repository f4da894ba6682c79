"""After an audit: audit the corrected labels again until they stand still, then train on them."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labelclean.atomic import folder_lock, one_writer
from labelclean.data.opening import open_manifest
from labelclean.options import RunOptions
from labelclean.recipe import Recipe
from labelclean.runs.digests import ROUND_FOLDERS
from labelclean.runs.folder import RunFolder
from labelclean.runs.reading import load_run
from labelclean.runs.relabelled import read_relabelled
from labelclean.training.runtime import leads_job, start_runtime
from labelclean.workflows.audit import run_audit
from labelclean.workflows.inputs import SideInputs
from labelclean.workflows.retrain import Retrained, retrain_run


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What came after the first audit.

    Args:
        changed: Labels changed in every round, the first audit's first.
        retrained: The training on its labels.
    """

    changed: tuple[int, ...]
    retrained: Retrained

    def facts(self) -> dict[str, object]:
        """Give it as plain data."""
        return {"rounds": list(self.changed), "retrain": dict(self.retrained.facts)}


def follow_up(
    path: str | Path,
    run: Path,
    recipe: Recipe,
    *,
    rounds: int = 1,
    decisions: Path | None = None,
    seed: int = 0,
    options: RunOptions = RunOptions(),
) -> FollowUp | None:
    """Repeat a finished audit on its own labels, then retrain on the last ones.

    Round k is a whole run folder, RUN/round-k; it ends when a round changes no label.

    Args:
        path: The manifest that was audited.
        run: The run folder of the first audit.
        recipe: Its settings, as asked for.
        rounds: Most rounds, the first audit included.
        decisions: What people decided; every round and the training believe them.
        seed: Seed of every draw.
        options: Where to compute and keep things.

    Returns:
        What was found, or None in a process that does not lead.
    """
    lock, needed = folder_lock(run), leads_job() and run.is_dir()
    with one_writer(lock, "audit --rounds", wait=options.queue, needed=needed):
        return _follow_up(path, run, recipe, rounds, decisions, seed, options)


def _follow_up(
    path: str | Path,
    run: Path,
    recipe: Recipe,
    rounds: int,
    decisions: Path | None,
    seed: int,
    options: RunOptions,
) -> FollowUp | None:
    stored, runtime = (
        load_run(run),
        start_runtime(options.device, threads=options.threads, seed=seed),
    )
    manifest = open_manifest(path, recipe.data)
    if runtime.leads:
        for stale in run.glob(ROUND_FOLDERS):
            if RunFolder(stale).ours:
                shutil.rmtree(stale)
    runtime.wait()
    first = read_relabelled(stored)
    label, latest = first.manifest.label, run
    changed = [int(np.count_nonzero(label != first.given))]
    while changed[-1] and len(changed) < rounds:
        latest = run / f"round-{len(changed) + 1}"
        options.log(f"round {len(changed) + 1}")
        run_audit(
            manifest.with_label(label),
            latest,
            recipe,
            seed=seed,
            options=options,
            side=SideInputs(decisions=decisions),
            overwrite=True,
        )
        again = read_relabelled(stored, latest=latest).manifest.label
        changed.append(int(np.count_nonzero(again != label)))
        label = again
    retrained = retrain_run(
        run,
        decisions=decisions,
        latest=None if latest == run else latest,
        seed=seed,
        options=options,
        overwrite=True,
    )
    return None if retrained is None else FollowUp(tuple(changed), retrained)
