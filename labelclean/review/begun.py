"""When a review began: kept beside the decisions, so that a restart goes on with the same sample.

The sample must be drawn before the answers it is judged by. So decisions.plan.json remembers how
many lines decisions.jsonl had when it was drawn; rows decided before are known and not part of it.
A new judgement of the run (`labelclean report`, another audit) moves rows between strata and
begins anew. Nothing is lost if the file is: a new sample is drawn from what is undecided.
"""

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

from labelclean.atomic import write_bytes
from labelclean.correction.decisions import History
from labelclean.errors import DataError
from labelclean.review.journal import DECISIONS_FILE
from labelclean.review.plan import BY_ACTION, KNOWN, NOWHERE, Plan, make_plan
from labelclean.review.rows import ReviewRows
from labelclean.runs.reading import OpenedRun

PLAN_FILE = "decisions.plan.json"


def begin(
    run: OpenedRun,
    rows: ReviewRows,
    suggested: NDArray[np.int64],
    history: History,
    *,
    precision: float,
) -> Plan:
    """Take up the sample of this run, or draw one.

    Args:
        run: The run.
        rows: Its M lines.
        suggested: (M,) suggested class.
        history: All decisions so far.
        precision: What automatic relabels are promised to have.

    Raises:
        DataError: The decisions are about another input.
    """
    stratum = np.array([BY_ACTION[name] for name in rows.actions], np.int8)[rows.action_code]
    parts = (rows.row, stratum, suggested, rows.p_error)
    judgement = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
    lines = _lines(run, judgement, history)
    for row in History(history.log[:lines]).current:
        at = rows.position(row)
        if at is not None and stratum[at] != NOWHERE:
            stratum[at] = KNOWN
    return make_plan(
        stratum,
        rows.p_error,
        rows.numbers("p_suggested"),
        precision=precision,
        seed=int(judgement[:15], 16) + lines,
    )


def _lines(run: OpenedRun, judgement: str, history: History) -> int:
    """Give how many decisions there were when the sample was drawn; remember it if it is now."""
    path, digest = run.folder / PLAN_FILE, run.facts["input"]["digest"]
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        about, same, lines = found["input"], found["judgement"] == judgement, found["lines"]
    except (OSError, ValueError, TypeError, KeyError):
        about, same, lines = None, False, 0
    if history.log and about not in (None, digest):
        raise DataError(
            f"{run.folder / DECISIONS_FILE} holds decisions about the input {about}, and this run "
            f"is about {digest}. Move both it and {PLAN_FILE} away to begin anew."
        )
    if same and isinstance(lines, int) and 0 <= lines <= len(history.log):
        return lines
    lines = len(history.log)
    content = {"input": digest, "judgement": judgement, "lines": lines}
    write_bytes(path, json.dumps(content).encode())
    return lines
