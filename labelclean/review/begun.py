"""When a review began: kept beside the decisions, so that a restart goes on with the same sample.

The sample must be drawn before the answers it is judged by. So decisions.plan.json remembers how
many lines decisions.jsonl had when it was drawn; rows decided before are known and not part of it.
It is drawn from what the run itself said, before anybody answered, so `labelclean report` leaves it
as it is; another audit moves rows between strata and begins anew. Nothing is lost if the file is: a
new sample is drawn from what is undecided.
"""

import json

from labelclean.atomic import write_bytes
from labelclean.correction.answers import Heard, sample_of
from labelclean.correction.decisions import History
from labelclean.correction.sample import Plan
from labelclean.errors import DataError
from labelclean.review.journal import DECISIONS_FILE
from labelclean.runs.again import Alone
from labelclean.runs.decisions_file import SAMPLE_FILE, read_sample_start
from labelclean.runs.reading import OpenedRun


def begin(run: OpenedRun, alone: Alone, history: History, *, precision: float) -> Plan:
    """Take up the sample of this run, or draw one.

    Args:
        run: The run.
        alone: What it said before anybody answered.
        history: All decisions so far.
        precision: What automatic relabels are promised to have.

    Raises:
        DataError: The decisions are about another input.
    """
    lines = _lines(run, alone.judged.digest, history)
    before = History(history.log[:lines]).current
    heard = Heard(known=tuple(before), lines=lines)
    return sample_of(alone.judged, alone.people, heard, precision)


def _lines(run: OpenedRun, judgement: str, history: History) -> int:
    """Give how many decisions there were when the sample was drawn; remember it if it is now."""
    path, digest = run.folder / SAMPLE_FILE, run.facts["input"]["digest"]
    began = read_sample_start(run.folder)
    if began is not None and history.log and began.input_digest != digest:
        raise DataError(
            f"{run.folder / DECISIONS_FILE} holds decisions about the input {began.input_digest}, "
            f"and this run is about {digest}. Move both it and {SAMPLE_FILE} away to begin anew."
        )
    if began is not None and began.judgement == judgement and began.lines <= len(history.log):
        return began.lines
    lines = len(history.log)
    content = {"input": digest, "judgement": judgement, "lines": lines}
    write_bytes(path, json.dumps(content).encode())
    return lines
