"""What all cells of an experiment share: the samples, the truth, the rows to measure on."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labelclean.benchmark.noise import inject
from labelclean.benchmark.papers.grid import GIVEN, Cell, parse_noise
from labelclean.data.manifest import Manifest
from labelclean.data.opening import open_manifest
from labelclean.data.scan import Scan
from labelclean.data.settings import DataSettings
from labelclean.data.splits import held_out
from labelclean.errors import ConfigError, DataError
from labelclean.options import silent
from labelclean.outputs.truth import UNKNOWN, Truth, read_truth
from labelclean.runs.relabelled import Relabelled
from labelclean.workflows.evaluation_split import EvaluationSplit, choose_evaluation_split
from labelclean.workflows.observe import look


@dataclass(frozen=True, slots=True)
class Study:
    """Samples whose truth is known, at least for some rows; N rows.

    Args:
        manifest: The samples; `label` are the labels before noise is planted.
        truth: True labels of the rows; UNKNOWN where there is none.
        train: (N,) readable rows that are trained on.
        evaluation: What models are measured on.
        readable: (N,) rows that can be read.
        source: Where the truth is from, for people.
    """

    manifest: Manifest
    truth: Truth
    train: NDArray[np.bool_]
    evaluation: EvaluationSplit
    readable: NDArray[np.bool_]
    source: str

    @property
    def known(self) -> NDArray[np.bool_]:
        """(N,) rows to train on whose truth is known."""
        known: NDArray[np.bool_] = self.train & (self.truth.label != UNKNOWN)
        return known

    def noisy(self, cell: Cell) -> Manifest:
        """Give the samples of a cell: its labels, and a split that says who is trained on.

        A person's word for a row is hidden, or nothing would be left to find.
        """
        label = self.manifest.label.copy()
        noise = parse_noise(cell.noise)
        if noise is not None:
            rows = np.flatnonzero(self.known)
            options: dict[str, object] = {}
            if noise.kind == "asymmetric":
                options["classes"] = self.manifest.classes
            if noise.variant is not None:
                options["variant"] = noise.variant
            label[rows] = inject(
                noise.kind,
                self.truth.label[rows],
                len(self.manifest.classes),
                noise.rate,
                np.random.default_rng(cell.seed),
                **options,
            ).label
        return self.with_label(label)

    def with_label(self, label: NDArray[np.int64]) -> Manifest:
        """Give the samples with some labels, to be trained on."""
        own = self.manifest.split
        apart = np.full(len(label), "test", dtype=object)
        if own is not None:
            apart[own.astype(str) == "val"] = "val"
        return replace(
            self.manifest,
            label=label,
            split=np.where(self.train, "train", apart).astype(object),
            verified=np.zeros(len(label), bool),
        )

    def labelled(self, manifest: Manifest) -> Relabelled:
        """Give the rows in the form the papers' measures take."""
        return _labelled(manifest, self.train, self.truth)


def open_study(
    path: str,
    settings: DataSettings,
    *,
    truth_col: str | None,
    labels: str | None,
    train_rows: int | None = None,
    test_rows: int | None = None,
) -> Study:
    """Read a manifest and find out what is true about it.

    Args:
        path: The manifest.
        settings: The [data] section.
        truth_col: Column with the true labels; None: the labels of verified rows are true.
        labels: Column with labels that are noisy as they are; None: noise is planted in the truth.
        train_rows: Train on the first so many rows only; None: on all.
        test_rows: Keep the first so many rows of the splits test and val only; None: all.

    Raises:
        ConfigError: The columns do not fit together.
        DataError: Nothing is known to be true.
    """
    if labels is not None and labels == truth_col:
        raise ConfigError(f"--labels and --truth-col are both {labels!r}; name two columns.")
    column = labels or truth_col or settings.label_col
    manifest = open_manifest(path, replace(settings, label_col=column))
    truth = _truth(manifest, truth_col, labels)
    wanted = ~held_out(manifest, settings.audit_split)
    kept = np.flatnonzero(_first(wanted, train_rows) | _first(~wanted, test_rows))
    if len(kept) < len(manifest):
        manifest, wanted = manifest.with_rows(kept), wanted[kept]
        truth = Truth(truth.column, truth.label[kept])
    scan = look(manifest, settings, silent)
    return _with_exam(manifest, truth, wanted, scan)


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns a comparison takes its labels from.

    Args:
        truth: True labels, or labels taken for the truth.
        labels: Labels that are noisy as they are; None: errors are planted in the truth.
    """

    truth: str
    labels: str | None


def own_columns(
    path: str, settings: DataSettings, truth_col: str | None, *, planted: bool
) -> Columns:
    """Choose the columns for a user's own data, whose truth is mostly not known.

    Args:
        path: The manifest.
        settings: The [data] section.
        truth_col: Column with the true labels; None: the given labels are taken for the truth.
        planted: Whether errors are planted in the truth, too, where it is known.

    Raises:
        DataError: The manifest cannot be read.
    """
    own = open_manifest(path, settings, need_images=False).label_col
    if own is None:
        raise DataError(f"{path} has no labels to compare losses on; name them with --label-col.")
    if truth_col is None:
        return Columns(own, None)
    return Columns(truth_col, None if planted else own)


def _labelled(manifest: Manifest, rows: NDArray[np.bool_], truth: Truth) -> Relabelled:
    trust = np.ones(len(manifest))
    return Relabelled(manifest, manifest.label, rows, rows, trust, truth.label, decided=0)


def _first(rows: NDArray[np.bool_], count: int | None) -> NDArray[np.bool_]:
    return rows if count is None else rows & (np.cumsum(rows) <= count)


def _truth(manifest: Manifest, truth_col: str | None, labels: str | None) -> Truth:
    if truth_col is not None:
        # Labels that are the truth themselves: noise will be planted in them.
        same = labels is None
        return Truth(truth_col, manifest.label.copy()) if same else read_truth(manifest, truth_col)
    if not manifest.verified.any():
        raise DataError(
            f"{manifest.source}: nothing says which labels are true. Name a column with "
            "--truth-col, or mark rows you are sure of in a column `verified`."
        )
    return Truth("verified", np.where(manifest.verified, manifest.label, UNKNOWN))


def _with_exam(manifest: Manifest, truth: Truth, wanted: NDArray[np.bool_], scan: Scan) -> Study:
    candidates = _labelled(manifest, wanted & scan.readable, truth)
    # Always the same rows: cells differ by what is under study alone.
    evaluation = choose_evaluation_split(candidates, scan, 0)
    train = wanted & scan.readable & ~evaluation.rows
    if evaluation.labels != "true":
        raise DataError(
            f"{manifest.source}: no row to measure accuracy on has a known true label; mark rows "
            "of split 'test', and verify them or fill the column of the truth."
        )
    if not (train & (truth.label != UNKNOWN)).any():
        raise DataError(
            f"{manifest.source}: no row that is trained on has a known true label; verify more "
            "rows, or name a column with --truth-col."
        )
    return Study(manifest, truth, train, evaluation, scan.readable, truth.column)


def given_only(labels: str | None, noises: list[str]) -> list[str]:
    """Give the noises of a grid: those to plant, or the one that is in the labels already.

    Raises:
        ConfigError: Both or neither are asked for.
    """
    if labels is not None and noises:
        raise ConfigError("--labels are noisy as they are and --noise plants noise; give one.")
    if labels is None and not noises:
        raise ConfigError("give the noise to plant (--noise symmetric:0.4) or a column (--labels).")
    return noises or [GIVEN]
