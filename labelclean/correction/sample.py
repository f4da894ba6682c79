"""Which rows to ask about next: a random sample that carries the estimates, and doubtful cases.

People look at the most suspect rows first, so the share of errors they find says nothing about
the rest. Estimates therefore rest on a sample that is fixed before the first answer: the rows are
split into strata by p_error, at the very cuts where the action changes (kept, to ask about,
relabelled automatically), put into a random order inside each, and taken from the front in blocks
of 20 questions. A block counts once all its sampled rows are answered, whichever way the answers
came about, and never before; so it makes no difference which other rows were answered.

Of the 20 questions 6 go to automatic relabels (as long as there are some), 10 to the other strata
in proportion to (rows * sqrt(p (1 - p)), Neyman's rule with the run's own p_error), at least 2
each; 4 are no part of the sample but the undecided cases: the rows closest to where the action
would change.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelclean.correction.actions import DROP, KEEP, RELABEL, REVIEW, UNREADABLE

BLOCK = 20
BORDER = 4
_RELABELS, _LEAST = 6, 2

KEPT, ASKED, RELABELLED, KNOWN, NOWHERE = range(5)
"""Strata of the sample; KNOWN was decided before it was drawn, NOWHERE cannot be read."""
STRATA = (KEPT, ASKED, RELABELLED)
BY_ACTION: Mapping[str, int] = {
    KEEP: KEPT,
    REVIEW: ASKED,
    DROP: ASKED,
    RELABEL: RELABELLED,
    UNREADABLE: NOWHERE,
}


@dataclass(frozen=True, slots=True)
class Judged:
    """What a run itself said about its M rows, by rising row; no answer has touched it.

    Args:
        row: (M,) int64 rows of the input.
        stratum: (M,) int8, see BY_ACTION.
        suggested: (M,) int64 suggested class.
        p_error: (M,) probability that the given label is wrong; NaN: not known.
        p_suggested: (M,) probability of the suggested class; NaN: not known.
    """

    row: NDArray[np.int64]
    stratum: NDArray[np.int8]
    suggested: NDArray[np.int64]
    p_error: NDArray[np.float64]
    p_suggested: NDArray[np.float64]

    @property
    def digest(self) -> str:
        """What the sample depends on, and nothing that rounding could move."""
        parts = (self.row, self.stratum, self.suggested)
        return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give where rows of the input stand here; rows that were not judged are left out."""
        at = np.searchsorted(self.row, rows)
        there = at < len(self.row)
        there[there] = self.row[at[there]] == rows[there]
        return at[there]


def by_row(
    row: NDArray[np.int64],
    action: NDArray[np.object_],
    suggested: NDArray[np.int64],
    p_error: NDArray[np.float64],
    p_suggested: NDArray[np.float64],
) -> Judged:
    """Order a judgement of (M,) rows by row."""
    order = np.argsort(row, kind="stable")
    codes = np.full(len(row), ASKED, np.int8)
    for name, stratum in BY_ACTION.items():
        codes[action == name] = stratum
    error, better = p_error.astype(np.float64)[order], p_suggested.astype(np.float64)[order]
    return Judged(row[order], codes[order], suggested[order], error, better)


@dataclass(frozen=True, slots=True)
class Plan:
    """The questions about M rows.

    Args:
        stratum: (M,) int8.
        place: (M,) int64, position in the random order of the row's stratum.
        block: (M,) int64, the block in which the row is sampled; far behind for KNOWN and NOWHERE.
        order: (M,) int64, the rows' positions, most informative first.
        size: (3,) rows of each stratum.
        share: (3,) sampled rows of each stratum in a block.
    """

    stratum: NDArray[np.int8]
    place: NDArray[np.int64]
    block: NDArray[np.int64]
    order: NDArray[np.int64]
    size: NDArray[np.int64]
    share: NDArray[np.int64]

    def complete(self, answered: NDArray[np.bool_]) -> int:
        """Count the blocks from the first on whose sampled rows are all answered; (M,) bool."""
        waiting = self.block[(self.stratum <= RELABELLED) & ~answered]
        if not len(waiting):
            return int(self.block[self.stratum <= RELABELLED].max(initial=-1)) + 1
        return int(waiting.min())


def draw(judged: Judged, known: NDArray[np.int64], lines: int, precision: float) -> Plan:
    """Draw the sample of a judgement; the same whenever it is drawn.

    Args:
        judged: What the run itself said.
        known: Rows of the input that people had decided before.
        lines: How many lines these decisions take; 0: there were none.
        precision: What automatic relabels are promised to have at least.
    """
    stratum = judged.stratum.copy()
    at = judged.places(known)
    stratum[at[stratum[at] != NOWHERE]] = KNOWN
    seed = int(judged.digest[:15], 16) + lines
    return make_plan(stratum, judged.p_error, judged.p_suggested, precision=precision, seed=seed)


def make_plan(
    stratum: NDArray[np.int8],
    p_error: NDArray[np.float64],
    p_suggested: NDArray[np.float64],
    *,
    precision: float,
    seed: int,
) -> Plan:
    """Draw the sample and order all rows.

    Args:
        stratum: (M,) see BY_ACTION; KNOWN where people have decided already.
        p_error: (M,) probability that the label is wrong; NaN: not known.
        p_suggested: (M,) probability of the suggested label; NaN: not known.
        precision: What a relabel must have at least.
        seed: Seed of the draw.
    """
    rng = np.random.default_rng(seed)
    rows = len(stratum)
    tie = rng.permutation(rows)
    size = np.array([np.count_nonzero(stratum == name) for name in STRATA], dtype=np.int64)
    share = _shares(stratum, p_error, size)
    place = np.zeros(rows, dtype=np.int64)
    block = np.full(rows, rows, dtype=np.int64)
    for name in STRATA:
        members = np.flatnonzero(stratum == name)
        place[members[np.argsort(tie[members])]] = np.arange(len(members))
        if len(members):
            block[members] = place[members] // share[name]
    turn = np.minimum(block, _border(stratum, p_error, p_suggested, precision) // BORDER)
    return Plan(stratum, place, block, np.lexsort((tie, turn)), size, share)


def _shares(
    stratum: NDArray[np.int8], p_error: NDArray[np.float64], size: NDArray[np.int64]
) -> NDArray[np.int64]:
    share = np.zeros(len(STRATA), dtype=np.int64)
    left = BLOCK - BORDER
    if size[RELABELLED]:
        share[RELABELLED] = _RELABELS if size[[KEPT, ASKED]].any() else left
        left -= share[RELABELLED]
    need = np.zeros(2)
    for name in (KEPT, ASKED):
        error = np.nan_to_num(p_error[stratum == name], nan=0.5)
        mean = float(np.clip(error.mean(), 0.01, 0.99)) if len(error) else 0.0
        need[name] = size[name] * np.sqrt(mean * (1 - mean))
    if need.all():
        kept = round(left * need[KEPT] / need.sum())
        share[KEPT] = min(max(kept, _LEAST), left - _LEAST)
        share[ASKED] = left - share[KEPT]
    else:
        share[KEPT], share[ASKED] = left * (need > 0)
    return share


def _border(
    stratum: NDArray[np.int8],
    p_error: NDArray[np.float64],
    p_suggested: NDArray[np.float64],
    precision: float,
) -> NDArray[np.int64]:
    """(M,) rank by closeness to a cut: of flagging by p_error, of relabelling by p_suggested."""
    inside, flagged = stratum <= RELABELLED, np.isin(stratum, (ASKED, RELABELLED))
    far = np.full(len(stratum), np.inf)
    inner_edge = p_error[flagged & np.isfinite(p_error)]
    if len(inner_edge):
        to_flag = np.abs(_logit(p_error) - _logit(float(inner_edge.min())))
        to_relabel = np.abs(_logit(p_suggested) - _logit(precision))
        far = np.where(inside, np.where(flagged, np.fmin(to_flag, to_relabel), to_flag), np.inf)
    rank = np.full(len(stratum), len(stratum) * BORDER, dtype=np.int64)
    near = np.flatnonzero(np.isfinite(far))
    rank[near[np.argsort(far[near], kind="stable")]] = np.arange(len(near))
    return rank


def _logit(p: NDArray[np.float64] | float) -> NDArray[np.float64]:
    inside = np.clip(p, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(inside / (1 - inside)))
