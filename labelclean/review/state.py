"""What a reviewer works on: the rows of a run, the decisions so far, what they tell."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from labelclean.atomic import folder_lock, one_writer
from labelclean.correction.actions import KEEP, UNREADABLE
from labelclean.correction.answers import Learned, answers_of, learn, note
from labelclean.correction.decisions import UNDO, Decision, check_decision, class_codes
from labelclean.correction.sample import BLOCK
from labelclean.data.settings import DataSettings
from labelclean.options import Log
from labelclean.outputs.report_pictures import SIDE
from labelclean.outputs.report_records import NEIGHBOURS_COLUMN
from labelclean.outputs.report_rows import Neighbours, copies_of, page_rows
from labelclean.outputs.run_folder import RECORDS
from labelclean.records.lists import read_lists
from labelclean.review.begun import begin
from labelclean.review.journal import Journal
from labelclean.review.pictures import ReviewPictures
from labelclean.review.rows import ReviewRows, Wanted
from labelclean.runs.again import judged_without_people
from labelclean.runs.issues import read_issues
from labelclean.runs.reading import OpenedRun, open_audited
from labelclean.workflows.write import picture_loader

ORDERS = ("rank", "row", "informative")


class ReviewState:
    """A run under review; safe to use from several threads.

    Args:
        run: The run.
        journal: Its decisions, open for writing.
    """

    def __init__(self, run: OpenedRun, journal: Journal) -> None:
        self.run, self._journal = run, journal
        self.rows = ReviewRows(read_issues(run))
        self.pictures = run_pictures(run)
        self._near = _neighbours(run.folder / RECORDS)
        labels = np.asarray(run.manifest.label_values(run.manifest.label), dtype=object)
        self._copies = copies_of(self.rows.table, labels, run.manifest.split)
        self._guard = threading.Lock()
        self._codes = class_codes(run.manifest)
        self._flagged = ~np.isin(self.rows.action, (KEEP, UNREADABLE))
        self._precision = float(run.facts["recipe"]["correction"]["relabel_precision"])
        self._alone = alone = judged_without_people(run)
        self._plan = begin(run, alone, journal.history, precision=self._precision)
        self._given = run.manifest.label[alone.judged.row]
        # Lines of issues.parquet by rising row, as everything about answers is ordered.
        self._by_row = np.argsort(self.rows.row, kind="stable")
        self._place = np.argsort(self._by_row, kind="stable")
        self._answers = answers_of(alone.judged, self._given, self._current())
        self._learned: Learned | None = None
        self._p_error = alone.judged.p_error
        self._reckon()

    def _current(self) -> dict[int, Decision]:
        """Give the decisions that count: those of this review, and what the audit was told."""
        return {**self._alone.people, **self._journal.history.current}

    def decide(self, entry: object) -> dict[str, Any]:
        """Store a decision and give the state after it.

        Raises:
            ValueError: It is no decision about a row of this run.
            OutputError: It could not be saved.
        """
        row, decision = check_decision(entry, self.run.manifest, self._codes)
        if decision.what == UNDO or self.rows.position(row) is None:
            raise ValueError(f"row {row} cannot be decided so here")
        with self._guard:
            self._journal.add(row, decision)
            self._note(row)
            self._reckon()
            return self._state()

    def undo(self) -> tuple[dict[str, object] | None, dict[str, Any]]:
        """Take back the latest decision; give it, or None, and the state after it."""
        with self._guard:
            line = self._journal.undo()
            if line is not None:
                self._note(int(str(line["row"])))
                self._reckon()
            return line, self._state()

    def state(self) -> dict[str, Any]:
        """Say how far the review is."""
        with self._guard:
            return self._state()

    def page(self, wanted: Wanted, order: str, offset: int, limit: int) -> dict[str, Any]:
        """Give a page of rows, and how many there are in all."""
        with self._guard:
            decided = self._answers.answered[self._place]
            p_error = self._p_error[self._place]
        keep = self.rows.select(wanted, p_error, decided)
        if order == "rank" and wanted.finding is not None:
            places = self.rows.in_order(wanted.finding)
            found = places[keep[places]]
        elif order == "rank":
            found = np.flatnonzero(keep)
        else:
            places = self._by_row if order == "row" else self._by_row[self._plan.order]
            found = places[keep[places]]
        return {"total": len(found), "rows": self._show(found[offset : offset + limit], p_error)}

    def _show(
        self, places: NDArray[np.int64], p_error: NDArray[np.float64]
    ) -> list[dict[str, Any]]:
        near = self._neighbours(self.rows.row[places])
        shown = page_rows(self.rows.table, places, near, self._copies)
        current = self._current()
        for line, at in zip(shown, places.tolist(), strict=True):
            error = float(p_error[at])
            line["p_error"] = None if np.isnan(error) else round(error, 4)
            if self.pictures is not None and line["action"] != UNREADABLE:
                line |= {"picture": f"thumb/{line['row']}", "full": f"image/{line['row']}"}
            for other in (*line["neighbours"], *line["copies"]):
                other["picture"] = None if self.pictures is None else f"thumb/{other['row']}"
            decision = current.get(line["row"])
            if decision is not None:
                line["decision"] = {"decision": decision.what, "label": self._name(decision)}
        return shown

    def _name(self, decision: Decision) -> str | None:
        return None if decision.label is None else str(self.run.manifest.classes[decision.label])

    def _neighbours(self, rows: NDArray[np.int64]) -> Neighbours:
        if self._near is None:
            return {}
        manifest, (place, near) = self.run.manifest, self._near
        found = {}
        for row in rows.tolist():
            if row < len(place) and place[row] >= 0:
                others = near[place[row]]
                others = others[others >= 0]
                labels = map(str, manifest.label_values(manifest.label[others]))
                found[row] = list(zip(others.tolist(), labels, strict=True))
        return found

    def _note(self, row: int) -> None:
        """Take over what is now decided about a row."""
        for at in self._alone.judged.places(np.array([row], np.int64)).tolist():
            decision = self._current().get(row)
            suggested = int(self._alone.judged.suggested[at])
            note(self._answers, at, decision, int(self._given[at]), suggested)

    def _reckon(self) -> None:
        """Learn anew after every block of answers, and after one was taken back."""
        count = int(self._answers.answered.sum())
        before = 0 if self._learned is None else self._learned.estimate.answers
        if self._learned is not None and count // BLOCK == before // BLOCK and count >= before:
            return
        judged = self._alone.judged
        self._learned = learned = learn(
            self._plan,
            judged.p_error,
            self._answers,
            precision=self._precision,
            seen=np.isin(judged.row, self._alone.seen),
        )
        self._p_error = judged.p_error if learned is None else learned.change(judged.p_error)

    def _state(self) -> dict[str, Any]:
        answered = self._answers.answered[self._place]
        learned = self._learned
        return {
            "decided": int(answered.sum()),
            "to_review": int((self._flagged & ~answered).sum()),
            "estimate": None if learned is None else asdict(learned.estimate),
        }


@contextmanager
def open_review(
    folder: Path, manifest: Path | None = None, *, wait: Log | None = None
) -> Iterator[ReviewState]:
    """Open a run for review; nobody else can write into its folder until it is closed.

    Args:
        folder: The run folder.
        manifest: Where the audited manifest is now; None: where it was.
        wait: Told for whom we wait to write into the folder; None: we do not.

    Raises:
        DataError: There is no run, or its files or decisions are not its own.
        OutputError: It is being reviewed already, or another process writes into its folder.
    """
    lock = folder_lock(folder)
    with one_writer(lock, "review", wait=wait, needed=folder.is_dir()):
        run = open_audited(folder, manifest)
        with Journal(folder, run.manifest) as journal:
            yield ReviewState(run, journal)


def run_pictures(run: OpenedRun) -> ReviewPictures | None:
    """Give the pictures of a run; None where its samples are none."""
    settings = DataSettings(**run.facts["recipe"]["data"])
    small = picture_loader(run.manifest, settings, SIDE)
    whole = picture_loader(run.manifest, settings)
    return None if small is None or whole is None else ReviewPictures(small, whole)


def _neighbours(records: Path) -> tuple[NDArray[np.int64], NDArray[np.int32]] | None:
    """Give the place of every row in the second, (n, k) nearest rows; None if there are none."""
    if not records.is_file() or NEIGHBOURS_COLUMN not in pq.read_schema(records).names:
        return None
    table = pq.read_table(records, columns=["row", NEIGHBOURS_COLUMN])
    near, row = read_lists(table, NEIGHBOURS_COLUMN), table["row"].to_numpy()
    if near is None or not len(row):
        return None
    place = np.full(int(row.max()) + 1, -1, dtype=np.int64)
    place[row] = np.arange(len(row))
    return place, near
