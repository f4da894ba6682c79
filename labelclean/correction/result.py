"""Audit: the finished result of a run as one frozen value; outputs show it and compute nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean.calibration.noise_model import NoiseModel
from labelclean.correction.actions import ACTIONS, DROP, KEEP, RELABEL, UNREADABLE
from labelclean.data.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found about M audited rows of a manifest, most suspect first.

    Arrays are NaN where a signal was not computed; `unreadable` rows come last.

    Args:
        manifest: The whole input.
        row: (M,) int64 input rows, in the order of the ranking.
        suggested: (M,) int64 suggested class; the given one where we would keep it.
        action: (M,) text, one of ACTIONS.
        p_error: (M,) probability that the given label is wrong.
        suspicion: (M,) 0 to 1, the ranking.
        p_suggested: (M,) probability of the suggested class.
        signals: Column name to (M,): p_given, attention, target_given, margin,
            neighbour_agreement, p_outlier, ambiguity, as far as they were computed.
        reason: (M,) short text.
        noise: The noise model; None where no estimate was possible.
        noise_rate: Mean of p_error over readable audited rows; None without estimate.
        noise_interval: 90 % interval of the rate; 95 % where people answered a random sample.
        diagnosis: What to know about the noise, in sentences.
        beside: Column name to (M,), what was found beside wrong labels: kind and duplicate_kind
            are text or None, duplicate_group and leaks_to numbers or -1.
        unknown: What could not be found beside wrong labels, and why.
        quality: Signal name to what planted flips said about it (auroc, ap).
        decided: (M,) bool, rows a person decided; None: nobody decided anything.
        answers: What people's answers tell, as plain data; None below 20 answers.
        facts: Plain data for run.json: seed, recipe, loss, device, timings, ...
    """

    manifest: Manifest
    row: NDArray[np.int64]
    suggested: NDArray[np.int64]
    action: NDArray[np.object_]
    p_error: NDArray[np.float64]
    suspicion: NDArray[np.float64]
    p_suggested: NDArray[np.float64]
    signals: Mapping[str, NDArray[np.float64]]
    reason: NDArray[np.object_]
    noise: NoiseModel | None
    noise_rate: float | None
    noise_interval: tuple[float, float]
    diagnosis: tuple[str, ...]
    beside: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    quality: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    decided: NDArray[np.bool_] | None = None
    answers: Mapping[str, object] | None = None
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def given(self) -> NDArray[np.int64]:
        """(M,) the given class of every audited row, in the order of the ranking."""
        return self.manifest.label[self.row]

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """(M,) flagged rows that no person has decided yet: what is left to look at."""
        flagged: NDArray[np.bool_] = (self.action != KEEP) & (self.action != UNREADABLE)
        # Rows left out of an audit were left out by a person.
        flagged &= ~((self.action == DROP) & np.isnan(self.p_error))
        return flagged if self.decided is None else flagged & ~self.decided

    def counts(self) -> dict[str, int]:
        """Count rows by what was decided."""
        found = {name: int(np.count_nonzero(self.action == name)) for name in ACTIONS}
        return {
            "rows": len(self.manifest),
            "audited": len(self.row),
            "flagged": len(self.row) - found[KEEP] - found[UNREADABLE],
            **found,
        }

    def corrected(self) -> NDArray[np.int64]:
        """(N,) the label of every input row after automatic relabelling."""
        label = self.manifest.label.copy()
        moved = self.action == RELABEL
        label[self.row[moved]] = self.suggested[moved]
        return label
