"""An audit of probabilities the user brings: nothing is trained."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelclean.calibration.checks import doubts, inspect
from labelclean.correction.decisions import left_out
from labelclean.data.splits import held_out
from labelclean.errors import DataError
from labelclean.evidence.value import Evidence
from labelclean.options import Log, peak_memory
from labelclean.outputs.report_records import with_shown
from labelclean.recipe import Recipe
from labelclean.workflows.collect import Collected
from labelclean.workflows.inputs import AuditInputs

NOTHING_READ = (
    "No picture was read, so nothing is said about outliers, duplicates and leaks; `labelclean "
    "check` finds duplicates and leaks."
)


def collect_probs(inputs: AuditInputs, recipe: Recipe, *, seed: int, log: Log) -> Collected:
    """Collect the given probabilities as evidence.

    Args:
        inputs: The manifest and the probabilities; features, where given, add what the nearest
            neighbours say.
        recipe: Every setting; those of training are not used.
        seed: Kept in run.json.
        log: Takes doubts about the probabilities.

    Raises:
        DataError: The probabilities are none, or no row is left to audit.
    """
    manifest = inputs.trainable()
    if inputs.pred_probs is None:
        raise ValueError("there are no probabilities to judge")
    audited = ~held_out(manifest, recipe.data.audit_split)
    out = left_out(manifest, inputs.people)
    rows = np.flatnonzero(audited & ~out)
    if not len(rows):
        raise DataError(
            f"{manifest.source}: every row is held out or left out; name one with --audit-split."
        )
    label = manifest.label[rows]
    probs = _normalised(inputs.pred_probs.values[rows])
    seen = inspect(label, inputs.pred_probs.values[rows])
    for doubt in doubts(label, seen, probs.shape[1]):
        log(f"Note: {doubt}")
    signals = {"p_given": seen.p_given.astype(np.float64)}
    near = None
    if inputs.features is not None:
        from labelclean.calibration.blend import with_neighbours  # noqa: PLC0415

        blended, agreement, near = with_neighbours(label, probs, inputs.features.values[rows])
        probs = np.asarray(blended, dtype=np.float32)
        signals["neighbour_agreement"] = np.asarray(agreement, dtype=np.float64)
    evidence = Evidence(
        rows,
        probs,
        None,
        signals,
        unreadable={},
        people=inputs.people,
        left_out=np.flatnonzero(audited & out),
        unknown=(NOTHING_READ,),
    )
    records = pa.table(
        {
            "row": pa.array(rows, pa.int64()),
            "sample_id": pa.array(manifest.sample_id[rows].tolist(), pa.string()),
            "label": pa.array(label, pa.int64()),
        }
    )
    facts = {
        "recipe": recipe.plain(),
        "seed": seed,
        "loss": None,
        "backbone": None,
        "epochs": 0,
        "peak_memory_bytes": peak_memory(),
    }
    records = with_shown(records, None if near is None else rows[near], None)
    return Collected(evidence, records, recipe, facts)


def _normalised(probs: NDArray[np.floating]) -> NDArray[np.float32]:
    # Half precision sums to one only roughly; what is stored must pass the same door again.
    wide = probs.astype(np.float64)
    total = wide.sum(axis=1, keepdims=True)
    return np.asarray(wide / np.where(total > 0, total, 1), dtype=np.float32)
