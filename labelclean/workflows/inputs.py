"""What a user brings to an audit besides the manifest: features, probabilities, the truth."""

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelclean.correction.decisions import Decisions, believe
from labelclean.data.manifest import Manifest
from labelclean.data.matrices import Matrix, read_matrix
from labelclean.data.opening import open_manifest
from labelclean.data.places import Place
from labelclean.data.settings import DataSettings
from labelclean.errors import DataError
from labelclean.outputs.truth import Truth, read_truth
from labelclean.runs.compare import RunLines, require_alike
from labelclean.runs.decisions_file import read_decisions


@dataclass(frozen=True, slots=True)
class SideInputs:
    """Where to find it, and None for what was not brought.

    Args:
        features: .npy of (N, D) features; no pictures are needed then.
        pred_probs: .npy of (N, C) out-of-sample probabilities in class order; nothing is trained.
        truth_col: Column with the true labels; only compared with, never learned from.
        decisions: decisions.jsonl of people who looked at these rows before.
        baseline: An earlier run to compare with, which must be about the same data.
        held: File with samples from a program's memory, which the run folder is to keep.
    """

    features: Path | None = None
    pred_probs: Path | None = None
    truth_col: str | None = None
    decisions: Path | None = None
    baseline: RunLines | None = None
    held: Path | None = None


@dataclass(frozen=True, slots=True)
class AuditInputs:
    """A manifest and what was brought with it, read and checked.

    Args:
        manifest: The samples.
        features: One row of numbers for each; None: none were brought.
        pred_probs: One probability per row and class; None: none were brought.
        truth: The true labels; None: they are not known.
        people: What people decided about the rows before.
    """

    manifest: Manifest
    features: Matrix | None = None
    pred_probs: Matrix | None = None
    truth: Truth | None = None
    people: Decisions = field(default_factory=dict)

    def trainable(self) -> Manifest:
        """Give the samples to train on: with the labels people vouch for, features if brought."""
        manifest = believe(self.manifest, self.people)
        if self.features is None:
            return manifest
        return replace(manifest, arrays=self.features.values)

    def digests(self) -> dict[str, str]:
        """Name the content of what was brought, for run.json and for resuming."""
        given = {"features": self.features, "pred_probs": self.pred_probs}
        found = {name: matrix.digest for name, matrix in given.items() if matrix is not None}
        if self.people:
            lines = sorted((row, made.what, made.label) for row, made in self.people.items())
            found["decisions"] = hashlib.sha256(repr(lines).encode()).hexdigest()
        return found


def read_audit_inputs(
    path: str | Place | Manifest, settings: DataSettings, side: SideInputs
) -> AuditInputs:
    """Read a manifest, unless it is read already, and everything brought with it.

    Raises:
        DataError: Something cannot be read or does not fit.
    """
    alone = side.features is None and side.pred_probs is None
    file: str | Place | None
    if isinstance(path, Manifest):
        manifest, file = path, side.held
    else:
        manifest, file = open_manifest(path, settings, need_images=alone), path
    whole = len(manifest)
    if settings.limit is not None and not alone and file is not None:
        whole = len(open_manifest(file, replace(settings, limit=None), need_images=False))
    if side.baseline is not None:
        require_alike(side.baseline, manifest.classes, str(manifest.source))
    features = probs = None
    if side.features is not None:
        features = read_matrix(side.features, "--features", manifest, whole=whole)
    if side.pred_probs is not None:
        probs = read_matrix(side.pred_probs, "--pred-probs", manifest, whole=whole)
        _check_width(probs.values, manifest, side.pred_probs)
    truth = None if side.truth_col is None else read_truth(manifest, side.truth_col)
    return AuditInputs(manifest, features, probs, truth, _people(manifest, side))


def _people(manifest: Manifest, side: SideInputs) -> Decisions:
    return {} if side.decisions is None else read_decisions(side.decisions, manifest)


def _check_width(probs: NDArray[np.floating], manifest: Manifest, path: Path) -> None:
    size = len(manifest.classes)
    if probs.shape[1] != size:
        raise DataError(
            f"--pred-probs {path} has {probs.shape[1]} columns, {manifest.source} has {size} "
            f"classes (in this order: {', '.join(map(str, manifest.classes[:10]))}"
            f"{' ...' if size > 10 else ''}); there must be one column for each class."
        )
