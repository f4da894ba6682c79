"""What leaves a run: the corrected labels, under a policy and people's decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean.correction.actions import DROP, KEEP, RELABEL, REVIEW, UNREADABLE
from labelclean.correction.decisions import Decisions, meanings
from labelclean.correction.kinds import DUPLICATES, LEAKS, LISTS, OUTLIERS, rows_on_lists
from labelclean.data.manifest import Manifest
from labelclean.data.marks import OWN_COLUMNS
from labelclean.errors import ConfigError, OutputError, shortlist
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
        drop: Names of LISTS whose rows are left out whatever the policy: outliers, all copies of
            a picture but one, and rows whose picture is in a held-out split as well.
    """

    policy: str | None = None
    min_confidence: float | None = None
    decisions: Decisions = field(default_factory=dict)
    drop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.policy is not None and self.policy not in POLICIES:
            raise ConfigError(f"policy {self.policy!r} is none of {', '.join(POLICIES)}.")
        if self.min_confidence is not None and not 0 <= self.min_confidence <= 1:
            raise ConfigError(f"--min-confidence is {self.min_confidence}; it must be 0 to 1.")
        if self.min_confidence is not None and self.policy == "keep":
            raise ConfigError("--min-confidence has no meaning with --policy keep; leave it out.")
        strange = [name for name in self.drop if name not in LISTS]
        if strange:
            raise ConfigError(
                f"--drop {','.join(self.drop)}: {shortlist(map(repr, strange))} is none of "
                f"{', '.join(LISTS)}."
            )


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
    """What a run found about its M audited rows: columns of issues.parquet, each (M,).

    `beside` has kind, duplicate_group and leaks_to, -1 for no group and no leak.
    """

    row: NDArray[np.int64]
    suggested: NDArray[np.int64]
    action: NDArray[np.object_]
    p_error: NDArray[np.float64]
    p_suggested: NDArray[np.float64]
    beside: Mapping[str, NDArray[Any]] = field(default_factory=dict)


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
    if choice.drop:
        if not found.beside:
            raise ConfigError(
                "the run says nothing about outliers, duplicates and leaks; audit again."
            )
        out |= _listed_out(manifest, found, choice)
    move = move & ~out & (found.suggested != given) & (found.p_suggested >= enough)
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
    if choice.drop:
        action[found.row[out]] = DROP
    action[found.row[move]] = RELABEL
    for row, meant in meanings(manifest, choice.decisions).items():
        label[row], kept[row], action[row] = meant.label, meant.kept, meant.action
        confidence[row] = 1.0 if meant.vouched else 1 - error[row]
    return Outcome(manifest, label, kept, action, confidence, error)


def _listed_out(manifest: Manifest, found: Findings, choice: ExportPolicy) -> NDArray[np.bool_]:
    """(M,) rows that are left out because they are on a list that is to go."""
    lists = rows_on_lists(found.beside)
    out = np.zeros(len(found.row), bool)
    if OUTLIERS in choice.drop:
        out |= lists[OUTLIERS]
    if LEAKS in choice.drop:
        # The picture stays where accuracy is measured; between other splits the first row stays.
        at, other = found.row[lists[LEAKS]], found.beside["leaks_to"][lists[LEAKS]]
        mine, theirs = (_held(manifest, rows) for rows in (at, other))
        out[lists[LEAKS]] |= (mine < theirs) | ((mine == theirs) & (at > other))
    if DUPLICATES in choice.drop:
        out |= _spare_copies(manifest, found, out, choice.decisions)
    return out


def _held(manifest: Manifest, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Say how much a row's split is for measuring: 2 for test, 1 for val, else 0."""
    if manifest.split is None:
        return np.zeros(len(rows), np.int64)
    names = manifest.split[rows].astype(str)
    return np.where(names == "test", 2, np.where(names == "val", 1, 0))


def _spare_copies(
    manifest: Manifest, found: Findings, gone: NDArray[np.bool_], people: Decisions
) -> NDArray[np.bool_]:
    """(M,) all but one row of every picture: the one whose label is most surely right stays."""
    group = found.beside["duplicate_group"]
    unwanted = {row for row, meant in meanings(manifest, people).items() if not meant.kept}
    vouched = {row for row, meant in meanings(manifest, people).items() if meant.vouched}
    going = gone | np.isin(found.row, list(unwanted))
    sure = np.isin(found.row, list(vouched)) | manifest.verified[found.row]
    doubt = np.where(np.isnan(found.p_error), 1.0, found.p_error)
    order = np.lexsort((found.row, doubt, ~sure, going))
    order = order[group[order] >= 0]
    first = np.unique(group[order], return_index=True)[1]
    spare = group >= 0
    spare[order[first]] = False
    return np.asarray(spare, bool)
