"""`labelclean predict`: labels and probabilities for new pictures."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labelclean.cli.options import Shared, data_settings, run_options, shared_options
from labelclean.cli.text import printable
from labelclean.errors import ConfigError

if TYPE_CHECKING:
    from labelclean.workflows.predict import Predictions

_SHOWN = 10


@click.command("predict", short_help="Label new pictures with the model of a run.")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("manifest")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Parquet file to write; default: NAME-predictions.parquet.",
)
@click.option("--embeddings", is_flag=True, help="Add a column with what the classifier saw.")
@shared_options
def command(run: Path, manifest: str, out: Path | None, embeddings: bool, shared: Shared) -> None:
    """Label the pictures of MANIFEST with the model of RUN, an audit's folder or RUN/retrain.

    MANIFEST needs no label column. The result has one line per row: row, sample_id, path,
    label_predicted, p_predicted, probs (in the order of the classes), reason. A row whose picture
    cannot be read has no prediction and a reason.
    """
    target = out or Path(f"{Path(manifest).stem or 'dataset'}-predictions.parquet")
    _check_target(target, Path(manifest), run)

    from labelclean.data.opening import open_manifest
    from labelclean.data.parquet import parquet_metadata, write_parquet
    from labelclean.models.saved import load_model
    from labelclean.outputs.predictions import predictions_table
    from labelclean.runs.reading import load_run, require_own_model
    from labelclean.training.runtime import start_runtime
    from labelclean.workflows.predict import predict_manifest

    stored = load_run(run)
    saved = load_model(run / "model")
    require_own_model(run, stored.facts)
    settings = data_settings(stored.recipe.data.for_other_data(), shared)
    table = open_manifest(manifest, settings, need_labels=False)
    runtime = start_runtime(
        shared.device,
        threads=shared.threads,
        seed=shared.seed,
        precision=stored.recipe.training.precision,
    )
    said = predict_manifest(
        saved, table, settings, runtime, options=run_options(shared), embeddings=embeddings
    )
    if not runtime.leads:
        return
    metadata = parquet_metadata(
        table,
        target,
        classes=list(said.classes),
        input_digest=table.digest,
        trained_on=stored.facts["input"]["digest"],
    )
    answer = predictions_table(table, said.classes, said.probs, said.reason, said.embedding)
    write_parquet(target, answer, metadata)
    facts = _facts(said, target)
    click.echo(json.dumps(facts, indent=2) if shared.as_json else _as_text(facts))


def _check_target(target: Path, manifest: Path, run: Path) -> None:
    if target.suffix.lower() != ".parquet":
        raise ConfigError(f"--out {target} must end in .parquet.")
    if target.exists() and manifest.exists() and target.samefile(manifest):
        raise ConfigError(f"--out {target} is the manifest itself; give another name.")
    if target.resolve().parent == run.resolve():
        raise ConfigError(f"--out {target} lies in the run folder; give a name elsewhere.")


def _facts(said: "Predictions", target: Path) -> dict[str, object]:
    best = said.probs[said.readable].argmax(axis=1)
    counts = Counter(best.tolist())
    return {
        "rows": len(said.manifest),
        "predicted": int(said.readable.sum()),
        "unreadable": int((~said.readable).sum()),
        "labels": [
            {"label": label, "rows": counts.get(code, 0)} for code, label in enumerate(said.classes)
        ],
        "out": str(target),
    }


def _as_text(facts: dict[str, object]) -> str:
    labels = sorted(facts["labels"], key=lambda entry: -entry["rows"])  # type: ignore[call-overload]
    shown = ", ".join(f"{printable(str(e['label']))} {e['rows']}" for e in labels[:_SHOWN])
    more = f" and {len(labels) - _SHOWN} more classes" if len(labels) > _SHOWN else ""
    lines = [f"{facts['predicted']} of {facts['rows']} rows predicted: {shown}{more}"]
    if facts["unreadable"]:
        lines.append(f"{facts['unreadable']} rows cannot be read; the column reason says why")
    return "\n".join([*lines, f"Predictions   {printable(str(facts['out']))}"])
