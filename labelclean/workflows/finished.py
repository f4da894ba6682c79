"""A finished audit in a program's hands: look at it, write it, predict and train with it."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from labelclean.atomic import one_writer, target_lock
from labelclean.correction.result import Audit
from labelclean.data.in_memory import hold_samples, root_of_paths
from labelclean.data.opening import open_manifest
from labelclean.data.settings import DataSettings
from labelclean.errors import ConfigError, DataError
from labelclean.losses import loss_name
from labelclean.models.own import backbone_name
from labelclean.models.saved import load_model
from labelclean.options import PathText, RunOptions
from labelclean.outputs.notebook_html import first_suspects, run_html, short_summary
from labelclean.outputs.predictions import predictions_table
from labelclean.outputs.report_pictures import SIDE
from labelclean.recipe import flag_overrides
from labelclean.runs.issues import ISSUES, read_run_table
from labelclean.runs.reading import load_run, open_audited, read_facts, require_own_model
from labelclean.runs.relabelled import CORRECTED
from labelclean.training.runtime import start_runtime
from labelclean.workflows.export import Form, decide_rows, write_export
from labelclean.workflows.predict import predict_manifest
from labelclean.workflows.report import report
from labelclean.workflows.retrain import Retrained, retrain_run
from labelclean.workflows.write import picture_loader

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, repr=False)
class FinishedRun:
    """A finished audit.

    Args:
        folder: The run folder.
        facts: What run.json says.
        audit: What was found, as arrays; None for a run that was opened again.
        changes: What changed since the baseline; None without one.
    """

    folder: Path
    facts: Mapping[str, Any]
    audit: Audit | None = field(default=None)
    changes: Mapping[str, object] | None = field(default=None)

    def __repr__(self) -> str:
        return f"<labelclean run {self.folder}: {'; '.join(short_summary(self.facts)[:2])}>"

    def _repr_html_(self) -> str:
        table = first_suspects(self._table(ISSUES))
        return run_html(self.facts, table, self._load(), self.folder)

    def _table(self, name: str) -> pa.Table:
        """Read a table of the run, or of the report that another program made of it since."""
        return read_run_table(self.folder / name, read_facts(self.folder))

    def _load(self) -> Any:
        """Give what reads a row's picture; None where the audited data is gone."""
        try:
            opened = open_audited(self.folder)
        except DataError:
            return None
        settings = DataSettings(**self.facts["recipe"]["data"])
        return picture_loader(opened.manifest, settings, SIDE)

    @property
    def issues(self) -> "pd.DataFrame":
        """Every audited row, most suspect first: issues.parquet."""
        return self._table(ISSUES).to_pandas()

    @property
    def corrected(self) -> "pd.DataFrame":
        """The input with corrected labels: corrected.parquet."""
        return self._table(CORRECTED).to_pandas()

    @property
    def noise_rate(self) -> float | None:
        """Estimated share of wrong labels; None without an estimate."""
        rate: float | None = self.facts["noise_rate"]
        return rate

    def report(
        self, *, decisions: PathText | None = None, manifest: PathText | None = None
    ) -> "FinishedRun":
        """Judge again from stored evidence, by what people decided; nothing is trained.

        Args:
            decisions: decisions.jsonl of `labelclean review`.
            manifest: Where the audited manifest is now; None: where it was.
        """
        done = report(self.folder, manifest=_path(manifest), decisions=_path(decisions))
        return replace(self, facts=done.facts, audit=done.audit)

    def export(
        self,
        target: PathText,
        *,
        policy: str | None = None,
        min_confidence: float | None = None,
        drop: Sequence[str] = (),
        decisions: PathText | None = None,
        manifest: PathText | None = None,
        with_evidence: bool = False,
        overwrite: bool = False,
    ) -> Path:
        """Write corrected labels: a table, an image folder or a patch; the original stays.

        Args:
            target: .parquet, .csv, .tsv, .jsonl, .npz, .patch.jsonl, or a new folder.
            policy: `relabel`, `drop` or `keep`; None: what the run decided.
            min_confidence: Change only what is so sure.
            drop: What to leave out as well: outliers, duplicates, leaks.
            decisions: decisions.jsonl, which stands above all.
            manifest: Where the audited manifest is now; None: where it was.
            with_evidence: Add our four columns.
            overwrite: Replace the target.

        Raises:
            ConfigError: The target cannot be written, or has a form only the command knows.
        """
        place = Path(target)
        if place.name.lower().endswith((".labelstudio.json", ".onnx")):
            raise ConfigError(f"{place}: this form is written by `labelclean export`.")
        with one_writer(target_lock(place), "export"):
            opened = open_audited(self.folder, _path(manifest))
            outcome = decide_rows(opened, policy, min_confidence, _path(decisions), tuple(drop))
            write_export(opened, outcome, place, Form(evidence=with_evidence, overwrite=overwrite))
        return place

    def predict(
        self, source: Any, *, device: str = "auto", backbone: Any = None, **columns: Any
    ) -> "pd.DataFrame":
        """Label new samples with the run's model.

        Args:
            source: A path, DataFrame, torch or Hugging Face Dataset as for `audit`; or paths,
                pictures or features without labels.
            device: `auto`, `cpu`, `cuda` or `mps`.
            backbone: The network of a run that was given one of the user's own.
            columns: image_col, image_root, allow_outside_root, limit, workers.

        Returns:
            Row, sample_id, path, label_predicted, p_predicted, probs, reason for every row.
        """
        if backbone is not None:
            backbone_name(backbone)
        stored = load_run(self.folder)
        saved = load_model(self.folder / "model")
        require_own_model(self.folder, stored.facts)
        settings = replace(stored.recipe.data.for_other_data(), **columns)
        runtime = start_runtime(device, precision=stored.recipe.training.precision)
        with tempfile.TemporaryDirectory(prefix="labelclean-") as name:
            path = source
            if not isinstance(source, str | os.PathLike):
                pair = source if _labelled(source) else (source, None)
                path = hold_samples(pair, Path(name), image_col=settings.image_col)
                if path.suffix == ".parquet" and settings.image_root is None:
                    root = root_of_paths(pq.read_table(path), settings.image_col)
                    settings = replace(settings, image_root=str(root))
            manifest = open_manifest(path, settings, need_labels=False)
            said = predict_manifest(saved, manifest, settings, runtime)
        table = predictions_table(manifest, said.classes, said.probs, said.reason, said.embedding)
        return table.to_pandas()

    def retrain(
        self,
        *,
        loss: Any = None,
        epochs: int | None = None,
        decisions: PathText | None = None,
        truth_col: str | None = None,
        set: Sequence[str] = (),
        seed: int = 0,
        options: RunOptions = RunOptions(),
        overwrite: bool = False,
    ) -> Retrained:
        """Train on the corrected labels into RUN/retrain, and compare with the given ones.

        Args:
            loss: Loss to train with; None: the run's own, or what suits the corrected labels.
            epochs: How often every sample is seen.
            decisions: decisions.jsonl, which stands above what the run decided.
            truth_col: Column with true labels, to measure against.
            set: Changes of single settings, "section.key=value".
            seed: Seed of every draw.
            options: Where to compute and keep things.
            overwrite: Replace an earlier retraining.
        """
        named = None if loss is None else loss_name(loss)
        flags = flag_overrides({"loss.name": named, "training.epochs": epochs})
        done = retrain_run(
            self.folder,
            overrides=(*flags, *set),
            decisions=_path(decisions),
            truth_col=truth_col,
            seed=seed,
            options=options,
            overwrite=overwrite,
        )
        if done is None:
            raise RuntimeError("this process does not lead; call retrain_run in a distributed job")
        return done


def _path(given: PathText | None) -> Path | None:
    return None if given is None else Path(given)


def _labelled(source: Any) -> bool:
    """Tell whether samples come as a table or Dataset rather than as X alone."""
    framed = hasattr(source, "columns") and getattr(source, "shape", (0, 2))[1:] != (1,)
    pair = isinstance(source, tuple) and len(source) == 2
    plain = isinstance(source, list | tuple) or hasattr(source, "dtype")
    return pair or framed or not plain
