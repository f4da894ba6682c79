"""Who leaves which rows out, where `training.folds` asks for networks that did not see the row."""

import numpy as np
import torch
from numpy.typing import NDArray

from labelclean import losses
from labelclean.data.manifest import Manifest
from labelclean.errors import DataError
from labelclean.evidence.cross_fitted import with_cross_fitted
from labelclean.evidence.duplicates import DuplicateGroups
from labelclean.evidence.features import FeatureEvidence
from labelclean.evidence.folds import assign_folds
from labelclean.evidence.together import join_groups, keep_together
from labelclean.options import OpenProgress
from labelclean.training.fit import Fitter
from labelclean.training.folds import CrossFitted, cross_fit
from labelclean.training.runtime import Runtime
from labelclean.training.samples import Samples
from labelclean.training.settings import LossSettings


def deal_folds(
    manifest: Manifest, samples: Samples, same: DuplicateGroups, folds: int, runtime: Runtime
) -> NDArray[np.int64] | None:
    """Deal the rows to train on to folds; rows of a group and copies of a picture stay together.

    Args:
        manifest: The samples, with their groups.
        samples: Those to train on.
        same: Rows that show the same picture; what the leading process knows counts.
        folds: How many; 0: none.
        runtime: Where to compute.

    Returns:
        (n,) 0 ... folds-1; None: no folds were asked for.

    Raises:
        DataError: A fold would leave too few rows to train on.
    """
    if not folds:
        return None
    n = samples.trained
    rows, label = samples.rows[:n], samples.label[:n]
    twins = same.of_rows(len(manifest))[rows]
    group = None if manifest.group is None else join_groups(manifest.group[rows], twins)
    rng = np.random.default_rng([abs(runtime.seed), int(runtime.seed < 0), 3])
    fold = torch.from_numpy(keep_together(assign_folds(label, folds, rng, group), twins))
    runtime.same_as_lead(fold)
    dealt: NDArray[np.int64] = np.unique(fold.numpy(), return_inverse=True)[1].astype(np.int64)
    if n - int(np.bincount(dealt).max()) < 2 * runtime.processes:
        raise DataError(
            f"training.folds is {folds}, and so many networks that each leave rows out cannot be "
            f"trained: too few of the {n} rows are left beside the largest group of rows that "
            "belong together. Set training.folds=0."
        )
    return dealt


def fit_folds(
    fitter: Fitter, fold: NDArray[np.int64] | None, chosen: LossSettings, progress: OpenProgress
) -> CrossFitted | None:
    """Train the networks that leave rows out, where they were asked for."""
    if fold is None:
        return None
    return cross_fit(fitter, fold, lambda: losses.build(chosen.name, **chosen.params), progress)


def hear_cross_fitted(
    features: FeatureEvidence | None,
    apart: CrossFitted | None,
    samples: Samples,
    manifest: Manifest,
) -> FeatureEvidence | None:
    """Let the networks that left rows out speak beside the sources on frozen features."""
    if features is None or apart is None:
        return features
    n = samples.trained
    sure = manifest.verified[samples.rows[:n]]
    return with_cross_fitted(features, apart.probs, samples.label[:n], sure if sure.any() else None)
