"""The flags of `labelclean audit` as keywords of `audit`."""

import inspect
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from labelclean.catalogue import nearest_name
from labelclean.errors import ConfigError
from labelclean.losses import loss_name
from labelclean.models.own import backbone_name
from labelclean.options import OpenProgress, PathText, RunOptions, progress_bar
from labelclean.recipe import Recipe, change_recipe, flag_overrides

_log = logging.getLogger("labelclean")


@dataclass(frozen=True, slots=True)
class AuditFlags:
    """What an audit may be asked for, besides what, where and by which recipe.

    Args:
        set: Changes of single settings, "section.key=value".
        loss: Loss to train with: a name, "package.module:Class", a class or an object.
        strategy: Way to train: a name of `labelclean strategies`.
        backbone: Network that looks at the pictures: a name, a torch module or a timm model.
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
        budget: Multiple of what a table may claim before it is read.
        workers: Processes that decode images; 0: none.
        threads: Threads for the arithmetic.
        device: `auto`, `cpu`, `cuda` or `mps`.
        seed: Seed of every draw.
        cache_dir: Folder of the feature cache.
        no_cache: Neither read nor write the cache.
        engine: Who decodes and embeds in shards: `local`, `ray` or `workers`.
        wait: Where another process writes into the folder, wait for it to end.
        progress: True shows bars on the error stream, None only on a terminal; or what opens one.
    """

    set: Sequence[str] = ()
    loss: str | type | nn.Module | None = None
    strategy: str | None = None
    backbone: str | nn.Module | None = None
    mode: str | None = None
    epochs: int | None = None
    evidence: str | Sequence[str] | None = None
    features: PathText | np.ndarray | None = None
    pred_probs: PathText | np.ndarray | None = None
    truth_col: str | None = None
    decisions: PathText | None = None
    baseline: PathText | None = None
    audit_split: str | None = None
    retrain: bool = False
    rounds: int = 1
    resume: bool = False
    overwrite: bool = False
    image_col: str | None = None
    label_col: str | None = None
    image_root: PathText | None = None
    allow_outside_root: bool = False
    limit: int | None = None
    budget: float | None = None
    workers: int | None = None
    threads: int | None = None
    device: str = "auto"
    seed: int = 0
    cache_dir: PathText | None = None
    no_cache: bool = False
    engine: str | None = None
    wait: bool = False
    progress: bool | OpenProgress | None = None

    def over(self, recipe: Recipe) -> Recipe:
        """Put the flags that were given over a recipe."""
        named = self.evidence.split(",") if isinstance(self.evidence, str) else self.evidence
        flags = {
            "loss.name": None if self.loss is None else loss_name(self.loss),
            "strategy.name": self.strategy,
            "model.backbone": None if self.backbone is None else backbone_name(self.backbone),
            "training.mode": self.mode,
            "training.epochs": self.epochs,
            "evidence.sources": None if named is None else list(named),
            "data.audit_split": self.audit_split,
            "data.image_col": self.image_col,
            "data.label_col": self.label_col,
            "data.image_root": None if self.image_root is None else os.fspath(self.image_root),
            "data.allow_outside_root": self.allow_outside_root or None,
            "data.limit": self.limit,
            "data.budget": self.budget,
            "data.workers": self.workers,
        }
        return change_recipe(recipe, (*flag_overrides(flags), *self.set))

    def options(self) -> RunOptions:
        """Give device, threads, cache, progress and messages as asked for."""
        shown = self.progress
        return RunOptions(
            device=self.device,
            threads=self.threads,
            cache=None if self.cache_dir is None else Path(self.cache_dir),
            no_cache=self.no_cache,
            engine=self.engine,
            wait=self.wait,
            progress=shown if callable(shown) else partial(progress_bar, shown=shown),
            log=_log.info,
        )


def audit_flags(given: Mapping[str, Any]) -> AuditFlags:
    """Read keywords; an unknown one is answered with the nearest name.

    Raises:
        ConfigError: There is no such keyword.
    """
    known = [entry.name for entry in fields(AuditFlags)]
    wrong = [name for name in given if name not in known]
    if wrong:
        raise ConfigError(
            f"audit has no keyword {wrong[0]!r}.{nearest_name(wrong[0], known)} Known: "
            f"{', '.join(known)}."
        )
    return AuditFlags(**given)


def signature_with_flags(function: Callable[..., object]) -> inspect.Signature:
    """Give the signature of `audit` with its keywords by name, for help and completion."""
    own = inspect.signature(function)
    plain = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
    named = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for p in inspect.signature(AuditFlags).parameters.values()
    ]
    return own.replace(parameters=[*plain, *named])
