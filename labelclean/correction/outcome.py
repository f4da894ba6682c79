"""What leaves a run: the corrected labels, under a policy and people's decisions."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from labelclean.correction.actions import DROP, KEEP, RELABEL, REVIEW, UNREADABLE
from labelclean.correction.decisions import Decisions, meanings
from labelclean.data.manifest import Manifest
from labelclean.data.marks import OWN_COLUMNS
from labelclean.errors import ConfigError, OutputError
from labelclean.outputs.tables import with_evidence

POLICIES = ("relabel", "drop", "keep")


@dataclass(frozen=True, slots=True)
class ExportPolicy:
    """What to make of a run's findings.

    Args:
        policy: `relabel` takes every suggestion on flagged rows, `drop` leaves flagged rows out,
            `keep` keeps all given labels; None: what the run decided.
        min_confidence: Least probability of the suggested label, or, for `drop`, that the given
            one is wrong; None: none.
        decisions: What people decided; stands above everything else.
    """

    policy: str | None = None
    min_confidence: float | None = None
    decisions: Decisions = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.policy is not None and self.policy not in POLICIES:
            raise ConfigError(f"policy {self.policy!r} is none of {', '.join(POLICIES)}.")
        if self.min_confidence is not None and not 0 <= self.min_confidence <= 1:
            raise ConfigError(f"--min-confidence is {self.min_confidence}; it must be 0 to 1.")
        if self.min_confidence is not None and self.policy == "keep":
            raise ConfigError("--min-confidence has no meaning with --policy keep; leave it out.")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of the N rows of a manifest.

    Args:
        manifest: The audited manifest.
        label: (N,) the label of each row now.
        kept: (N,) False for rows that are left out.
        action: (N,) text, what was done; None for rows that were not audited.
        confidence: (N,) how sure the label is; NaN where nobody can say.
        p_error: (N,) probability that the given label is wrong; NaN where nobody can say.
    """

    manifest: Manifest
    label: NDArray[np.int64]
    kept: NDArray[np.bool_]
    action: NDArray[np.object_]
    confidence: NDArray[np.float64]
    p_error: NDArray[np.float64]

    @property
    def moved(self) -> NDArray[np.int64]:
        """Rows that are kept under another label."""
        return np.flatnonzero(self.kept & (self.label != self.manifest.label))

    @property
    def dropped(self) -> NDArray[np.int64]:
        """Rows that are left out."""
        return np.flatnonzero(~self.kept)

    def corrected(self, *, evidence: bool) -> Manifest:
        """Give the manifest that leaves: corrected labels, rows left out.

        Args:
            evidence: Add the columns label_given, label_action, label_confidence and p_error.
        """
        if not self.kept.any():
            raise OutputError("every row would be left out; choose another policy.")
        given = self.manifest
        manifest = given.with_label(self.label)
        table = manifest.table
        # Our own columns of an earlier run speak of labels that were replaced since.
        stale = [name for name in OWN_COLUMNS if name in table.column_names]
        if stale:
            table = table.drop_columns(stale)
        if evidence:
            before = given.table.column(str(given.label_col))
            table = with_evidence(table, before, self.action, self.confidence, self.p_error)
        manifest = replace(manifest, table=table)
        return manifest if self.kept.all() else manifest.with_rows(np.flatnonzero(self.kept))


@dataclass(frozen=True, slots=True)
class Findings:
    """What a run found about its M audited rows: columns of issues.parquet, each (M,)."""

    row: NDArray[np.int64]
    suggested: NDArray[np.int64]
    action: NDArray[np.object_]
    p_error: NDArray[np.float64]
    p_suggested: NDArray[np.float64]


def apply_policy(manifest: Manifest, found: Findings, choice: ExportPolicy) -> Outcome:
    """Apply a policy and people's decisions to what a run found about a manifest."""
    given = manifest.label[found.row]
    enough = choice.min_confidence or 0.0
    flagged, lost = found.action != KEEP, found.action == UNREADABLE
    lost |= (found.action == DROP) & np.isnan(found.p_error)  # people left it out
    move, out = np.zeros(len(given), bool), np.zeros(len(given), bool)
    if choice.policy is None:
        move, out = found.action == RELABEL, found.action == DROP
    elif choice.policy == "relabel":
        move = flagged & ~lost
    elif choice.policy == "drop":
        out = flagged & (lost | (found.p_error >= enough))
    move = move & (found.suggested != given) & (found.p_suggested >= enough)
    label, kept = manifest.label.copy(), np.ones(len(manifest), bool)
    label[found.row[move]] = found.suggested[move]
    kept[found.row[out]] = False
    confidence, error = np.full(len(manifest), np.nan), np.full(len(manifest), np.nan)
    confidence[found.row] = np.where(move, found.p_suggested, 1 - found.p_error)
    error[found.row] = found.p_error
    action = np.full(len(manifest), None, dtype=object)
    # A change the run proposed and this choice did not make is still open.
    left = np.isin(found.action, (RELABEL, DROP)) & ~move & ~out
    action[found.row] = np.where(left, REVIEW, found.action)
    action[found.row[move]] = RELABEL
    for row, meant in meanings(manifest, choice.decisions).items():
        label[row], kept[row], action[row] = meant.label, meant.kept, meant.action
        confidence[row] = 1.0 if meant.vouched else 1 - error[row]
    return Outcome(manifest, label, kept, action, confidence, error)
