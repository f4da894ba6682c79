"""From what training recorded to what the judge needs, and what is kept beside it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelclean.calibration.fused import Fusion
from labelclean.correction.decisions import Decisions
from labelclean.correction.result import Audit
from labelclean.data.quality import quality_words
from labelclean.evidence.cross_fitted import fuse_cross_fitted
from labelclean.evidence.neighbours import nearest_rows
from labelclean.evidence.sources import SOURCES
from labelclean.evidence.value import Evidence
from labelclean.options import peak_memory
from labelclean.outputs.report_records import SHOWN_NEIGHBOURS, with_shown
from labelclean.recipe import Recipe
from labelclean.records.records import Records
from labelclean.records.store import records_table
from labelclean.runs.check import CONTENT
from labelclean.training.runtime import Runtime
from labelclean.workflows.inputs import AuditInputs
from labelclean.workflows.observe import Observation

LOOKED_UP = 5000
WITHOUT_PICTURES = (
    "No pictures were read, so nothing is said about outliers and near duplicates; rows of the "
    "same content are found."
)
LARGEST_EMBEDDING = 1 << 30  # bytes


@dataclass(frozen=True, slots=True)
class Collected:
    """Everything that was observed, ready to be judged and written.

    Args:
        evidence: What the judge needs.
        records: One line per audited row: what else is worth keeping.
        recipe: Every setting, resolved.
        facts: Plain data for run.json.
    """

    evidence: Evidence
    records: pa.Table
    recipe: Recipe
    facts: Mapping[str, object]


def collect(observed: Observation, inputs: AuditInputs, runtime: Runtime) -> Collected:
    """Collect what was observed."""
    rows = observed.rows
    records = records_table(observed.fitted.records, rows, observed.manifest.sample_id[rows])
    records = with_shown(records, _near(observed), _attentive(observed))
    content = pa.array([line.tobytes() for line in observed.scan.digest[rows]], pa.binary(32))
    evidence = collect_evidence(observed, inputs.people)
    return Collected(
        evidence=evidence,
        records=records.append_column(CONTENT, content),
        recipe=observed.recipe,
        facts=_facts(observed, evidence, runtime),
    )


def collect_evidence(observed: Observation, people: Decisions | None = None) -> Evidence:
    """Collect what the judge needs.

    Args:
        observed: What training recorded.
        people: What people decided before; None: nothing.
    """
    records, label = observed.fitted.records, observed.fitted.records.label
    rows = np.arange(len(label))
    signals: dict[str, NDArray[np.float64]] = {
        "p_given": records.probs[rows, label].astype(np.float64)
    }
    if records.margin is not None:
        signals["margin"] = records.margin[-1].astype(np.float64)
    attentive = _attentive(observed)
    if attentive.attention is not None:
        signals["attention"] = attentive.attention[-1].astype(np.float64)
    if attentive.target is not None:
        signals["target_given"] = attentive.target[rows, label].astype(np.float64)
    frozen = observed.features
    if frozen is not None:
        signals["neighbour_agreement"] = frozen.neighbour_agreement
    probs, fusion = _pooled(observed)
    odd = observed.outliers
    if odd.found is not None and odd.found.probability is not None:
        signals["p_outlier"] = odd.found.probability
    bad = np.flatnonzero(~observed.scan.readable)
    return Evidence(
        row=observed.rows,
        probs=probs,
        fusion=fusion,
        in_sample=fusion is None,
        signals=signals,
        unreadable={int(row): str(observed.scan.reason[row]) for row in bad},
        quality={} if frozen is None else frozen.quality,
        duplicates=observed.duplicates,
        faults=quality_words(observed.scan),
        unknown=_unknown(observed),
        people=people or {},
        left_out=observed.left_out,
    )


def _pooled(observed: Observation) -> tuple[NDArray[np.float32], Fusion | None]:
    """Give the class posteriors to judge by; without a fusion, those of the trained network."""
    if observed.features is not None:
        return observed.features.fused, observed.features.fusion
    records, apart = observed.fitted.records, observed.cross_fitted
    if apart is None:
        return records.probs, None
    sure = observed.manifest.verified[observed.rows]
    verified = sure if sure.any() else None
    return fuse_cross_fitted(apart.probs, records.label, apart.fold, verified)


def _unknown(observed: Observation) -> tuple[str, ...]:
    """Say what could not be found beside wrong labels, and why."""
    if not observed.manifest.has_images:
        return (WITHOUT_PICTURES,)
    return (observed.outliers.why_not,) if observed.outliers.why_not else ()


def model_facts(observed: Observation, result: Audit) -> dict[str, object]:
    """Give what the model's card says about the data it comes from."""
    return {
        "counts": result.counts(),
        "noise_rate": result.noise_rate,
        "corrected": False,
        "accuracy": {
            f"split {name}": share for name, share in _accuracy(observed, observed.held_out).items()
        },
    }


def _near(observed: Observation) -> NDArray[np.int64] | None:
    """Give the nearest rows of each trained row; -1 where nobody asked, None: not known.

    Without frozen features only the rows that fit their label worst are looked up, in the trained
    network's own features, and only where these are small enough to be copied.
    """
    if observed.features is not None:
        return observed.rows[observed.features.near]
    records = observed.fitted.records
    if records.embedding is None or records.embedding.nbytes > LARGEST_EMBEDDING:
        return None
    own = records.probs[np.arange(len(records.label)), records.label]
    asked = np.argsort(own, kind="stable")[:LOOKED_UP]
    found, _ = nearest_rows(records.embedding, SHOWN_NEIGHBOURS, asked)
    near = np.full((len(own), found.shape[1]), -1)
    near[asked] = observed.rows[found]
    return near


def _attentive(observed: Observation) -> Records:
    """Give the records of the loss whose attention and targets count."""
    own = observed.fitted.records
    trained = observed.recipe.training.mode != "head" and own.attention is not None
    return own if observed.features is None or trained else observed.features.attention


def _facts(observed: Observation, evidence: Evidence, runtime: Runtime) -> dict[str, object]:
    fitted, recipe = observed.fitted, observed.recipe
    backbone = fitted.backbone
    return {
        "recipe": recipe.plain(),
        "seed": runtime.seed,
        "loss": {"name": recipe.loss.name, "params": dict(recipe.loss.params)},
        "backbone": None
        if backbone is None
        else {
            "name": backbone.name,
            "weights": backbone.weights,
            "image_size": backbone.spec.size,
        },
        "epochs": fitted.epochs,
        "evidence": _weights(evidence),
        "outliers": observed.outliers.facts(),
        "early_stop": {
            "labels": recipe.training.early_stop,
            "kept_epoch": None if fitted.best_epoch < 0 else fitted.best_epoch + 1,
        },
        "held_out_accuracy": _accuracy(observed, observed.held_out),
        **leak_facts(observed),
        "peak_memory_bytes": peak_memory(),
        "machine": {
            "device": runtime.device.type,
            "processes": runtime.processes,
            "threads": runtime.threads,
        },
    }


def _weights(evidence: Evidence) -> dict[str, object]:
    """Give what decided: the weight of every source and its quality on planted rows."""
    if evidence.fusion is None:
        return {}
    known: dict[str, object] = {
        name: {
            "weight": round(evidence.fusion.weights.get(name, 0.0), 4),
            **evidence.quality.get(name, {}),
            "saw_label": source.saw_label,
        }
        for name, source in SOURCES.items()
    }
    return known | {"even_share_of_matrix": evidence.fusion.share}


def leak_facts(observed: Observation) -> dict[str, object]:
    """Say how many held-out rows show a picture that was trained on, and the accuracy without."""
    group = observed.duplicates.of_rows(len(observed.manifest))
    held = observed.held_out
    leaked = (group[held] >= 0) & np.isin(group[held], group[observed.rows])
    if observed.manifest.split is None or not leaked.any():
        return {}
    names, counts = np.unique(observed.manifest.split[held[leaked]].astype(str), return_counts=True)
    return {
        "held_out_leaks": dict(zip(names.tolist(), counts.tolist(), strict=True)),
        "held_out_accuracy_without_leaks": _accuracy(observed, held[~leaked]),
    }


def _accuracy(observed: Observation, rows: NDArray[np.int64]) -> dict[str, float]:
    """Give the share of held-out rows whose given label the model predicts, by split."""
    split = observed.manifest.split
    if split is None or not len(rows):
        return {}
    asked = np.isin(observed.held_out, rows)
    right = observed.fitted.other_probs.argmax(axis=1) == observed.manifest.label[observed.held_out]
    names = split[rows].astype(str)
    return {name: float(right[asked][names == name].mean()) for name in np.unique(names).tolist()}
