"""The dear part of a run: look at every sample, gather evidence on frozen features, train."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from labelclean import losses
from labelclean.data.images import ImageLimits
from labelclean.data.manifest import Manifest
from labelclean.data.scan import Scan, scan_features, scan_images
from labelclean.data.settings import DataSettings
from labelclean.data.sources import open_source
from labelclean.data.splits import held_out as held_out_rows
from labelclean.evidence.cross_fitted import CROSS_FITTED
from labelclean.evidence.duplicates import DuplicateGroups, no_duplicates
from labelclean.evidence.features import (
    CANDIDATE_LOSSES,
    FeatureEvidence,
    Hear,
    PreparedFeatures,
    gather_feature_evidence,
)
from labelclean.evidence.sources import NETWORK
from labelclean.models.backbones import check_backbone
from labelclean.options import OnProgress, RunOptions, cache_folder
from labelclean.recipe import Recipe
from labelclean.runs.folder import require_same_content
from labelclean.strategies import build_strategy, require_companions
from labelclean.training.fit import Fitter
from labelclean.training.folds import CrossFitted
from labelclean.training.inference import Watch
from labelclean.training.runtime import Runtime, one_thread_each
from labelclean.training.samples import Fitted
from labelclean.training.selection import select_samples, settle_training
from labelclean.training.settings import LossSettings, StrategySettings, TrainSettings
from labelclean.workflows.cross_fitting import deal_folds, fit_folds, hear_cross_fitted
from labelclean.workflows.duplicates import find_duplicates
from labelclean.workflows.engines import shared_out
from labelclean.workflows.fitting import make_fitter
from labelclean.workflows.outliers import NOTHING_FROZEN, OutlierReport, make_outliers
from labelclean.workflows.plan import describe_plan
from labelclean.workflows.planted_trial import hear_network

AUTO = "auto"
WITHOUT_TRIAL = "gce"
"""What `auto` trains where planted flips would cost as much as the training itself."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What looking at a manifest and training on it gave.

    Args:
        manifest: The samples.
        scan: Which of them can be read.
        rows: (n,) rows that were trained on; line i of the records is row `rows[i]`.
        held_out: (m,) readable rows of the splits test and val.
        left_out: (k,) readable rows that were not trained on because people want them out.
        fitted: The model, the records, and what it said about the held-out rows.
        features: Evidence from frozen features; None without a network that saw no label.
        cross_fitted: What networks say that each left rows out; None: there are none.
        duplicates: Rows that show the same picture, held-out ones too.
        outliers: Which pictures show none of the classes.
        recipe: With every setting resolved.
    """

    manifest: Manifest
    scan: Scan
    rows: NDArray[np.int64]
    held_out: NDArray[np.int64]
    left_out: NDArray[np.int64]
    fitted: Fitted
    features: FeatureEvidence | None
    cross_fitted: CrossFitted | None
    duplicates: DuplicateGroups
    outliers: OutlierReport
    recipe: Recipe


def prepare(recipe: Recipe) -> None:
    """Refuse a recipe whose names or parameters cannot work, before anything is spent."""
    strategy = build_strategy(recipe.strategy.name, **recipe.strategy.params)
    if recipe.loss.name != AUTO:
        loss = losses.build(recipe.loss.name, **recipe.loss.params)
        if recipe.loss.name not in losses.LOSSES.shipped:
            losses.probe_loss(recipe.loss.name, loss)
    else:
        loss = losses.build(WITHOUT_TRIAL)
    require_companions(
        recipe.strategy.name, strategy, recipe.loss.name, loss, recipe.training.accumulate
    )
    mode = recipe.training.mode
    check_backbone(recipe.model.backbone, recipe.model.pretrained and mode != "scratch")


def observe(  # noqa: PLR0913 (what may watch a training is apart from what it needs)
    manifest: Manifest,
    recipe: Recipe,
    runtime: Runtime,
    *,
    options: RunOptions = RunOptions(),
    workspace: Path | None = None,
    claim: Callable[[], object] | None = None,
    left_out: NDArray[np.bool_] | None = None,
    watch: Watch | None = None,
    hear: Hear | None = None,
) -> Observation:
    """Look at every sample, train, and record what training said: the dear part of a run.

    Args:
        manifest: The samples.
        recipe: Every setting.
        runtime: Where to compute.
        options: Where to compute and keep things.
        workspace: Folder for checkpoints, which are taken up again; None: no checkpoints.
        claim: Makes the workspace ready; called when nothing can be refused any more.
        left_out: (N,) rows to pass over; None: none.
        watch: Told, after every epoch, the probabilities of the readable held-out rows.
        hear: Told what every source on frozen features says.

    Raises:
        DataError: Too few readable samples to train on.
        ConfigError: The recipe does not fit the samples.
        TrainingError: Training failed.
    """
    parts = shared_out(manifest, recipe, runtime, options, workspace, claim)
    with options.progress("decode") as on_progress:
        scan = parts.scan() if parts else look(manifest, recipe.data, on_progress)
    out = np.zeros(len(manifest), bool) if left_out is None else left_out
    samples, held_out = select_samples(manifest, scan, recipe.data, out)
    samples = samples.with_parts(parts)
    with options.progress("duplicates"):
        same = find_duplicates(scan, samples.source) if runtime.leads else no_duplicates()
    training = settle_training(recipe.training, samples, runtime)
    if not recipe.evidence.asks(CROSS_FITTED):
        training = replace(training, folds=0)
    fold = deal_folds(manifest, samples, same, training.folds, runtime)
    resolved = replace(recipe, training=training)
    with feature_cache(options, workspace) as cache:
        with options.progress("network"):
            fitter = make_fitter(samples, resolved, runtime, cache, workspace)
        if claim is not None and parts is None:
            claim()
            runtime.wait()
        if workspace is not None:
            require_same_content(workspace, samples.digest, runtime.leads)
            runtime.wait()
        with options.progress("network"):
            frozen = _frozen(fitter, resolved, runtime, cache, workspace)
        with options.progress("plan"):
            options.log(describe_plan(fitter, frozen, recipe))
        evidence, odd, chosen = _gather(frozen, manifest, same, resolved, runtime, options, hear)
        del frozen
        resolved = replace(resolved, loss=chosen)
        fitted = fitter.fit(losses.build(chosen.name, **chosen.params), options.progress, watch)
        apart = fit_folds(fitter, fold, chosen, options.progress)
        evidence = hear_cross_fitted(evidence, apart, samples, manifest)
        if recipe.evidence.asks(NETWORK):
            evidence = hear_network(evidence, fitter, fitted, resolved, options.progress)
    rows = samples.rows[: samples.trained]
    passed = np.flatnonzero(out & scan.readable & ~held_out_rows(manifest, recipe.data.audit_split))
    return Observation(
        manifest, scan, rows, held_out, passed, fitted, evidence, apart, same, odd, resolved,
    )  # fmt: skip


def _frozen(
    fitter: Fitter, recipe: Recipe, runtime: Runtime, cache: Path, workspace: Path | None
) -> Fitter | None:
    """Give what computes features that no label has touched; None: the recipe has no such network.

    A network that was trained on the rows it is to judge has learnt part of their errors by heart
    and is surer than it should be, so the pretrained one speaks even where it is fine-tuned.
    """
    training = recipe.training
    if training.mode == "head":
        return fitter
    if training.mode == "scratch" or not recipe.model.pretrained:
        return None
    head = TrainSettings(cache_gigabytes=training.cache_gigabytes)
    head = head.resolved("head", fitter.samples.trained, runtime.processes)
    # At the size that suits frozen features, whatever size is trained at.
    model = replace(recipe.model, image_size=None)
    settings = replace(recipe, training=head, model=model, strategy=StrategySettings())
    return make_fitter(fitter.samples, settings, runtime, cache, workspace)


def _gather(
    frozen: Fitter | None,
    manifest: Manifest,
    same: DuplicateGroups,
    recipe: Recipe,
    runtime: Runtime,
    options: RunOptions,
    hear: Hear | None,
) -> tuple[FeatureEvidence | None, OutlierReport, LossSettings]:
    """Gather evidence on frozen features, and settle which loss to train."""
    asked, odd = recipe.loss, OutlierReport(None, NOTHING_FROZEN)
    features = None if frozen is None else frozen.features(options.progress)
    if frozen is None or features is None:
        return None, odd, LossSettings(WITHOUT_TRIAL) if asked.name == AUTO else asked
    candidates = CANDIDATE_LOSSES if asked.name == AUTO else {asked.name: asked.params}
    search, evidence = make_outliers(frozen, options.progress), None
    best = torch.zeros(1, dtype=torch.int64)
    if runtime.leads:
        samples, n = frozen.samples, frozen.samples.trained
        rows = samples.rows[:n]
        with one_thread_each():
            with options.progress("neighbours"):
                prepared = PreparedFeatures(
                    features,
                    samples.num_classes,
                    weight=samples.weight,
                    seed=runtime.seed,
                    group=None if manifest.group is None else manifest.group[rows],
                    verified=manifest.verified[rows],
                    twins=same.of_rows(len(manifest))[rows],
                )
            evidence = gather_feature_evidence(
                prepared, samples.label[:n], candidates, options.progress, recipe.evidence, hear
            )
            with options.progress("outliers"):
                odd = search.judge(prepared, evidence, samples.label[:n])
        best[0] = list(candidates).index(evidence.loss)
    # One process decides for all: others may round differently.
    runtime.same_as_lead(best)
    name = list(candidates)[int(best)]
    return evidence, odd, LossSettings(name, dict(candidates[name]))


@contextmanager
def feature_cache(options: RunOptions, workspace: Path | None) -> Iterator[Path]:
    """Give the folder of the feature cache, one that goes away where none is wanted."""
    if not options.no_cache:
        yield cache_folder(options.cache)
    elif workspace is not None:
        # The processes of a run share its folder, and it goes when the run is complete.
        yield workspace / "features"
    else:
        with tempfile.TemporaryDirectory(prefix="labelclean-") as folder:
            yield Path(folder)


def look(manifest: Manifest, settings: DataSettings, on_progress: OnProgress) -> Scan:
    """Look at every sample once."""
    if manifest.arrays is not None and not manifest.has_images:
        return scan_features(manifest.arrays)
    limits = ImageLimits(settings.max_bytes, settings.max_pixels)
    return scan_images(
        open_source(manifest, limits), workers=settings.workers, progress=on_progress
    )
