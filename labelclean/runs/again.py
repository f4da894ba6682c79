"""A finished run judged again from its records, with what people decided since; nothing trains."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelclean.correction.answers import Heard
from labelclean.correction.decisions import Decisions
from labelclean.correction.judging import judge_evidence
from labelclean.correction.outcome import Findings
from labelclean.correction.people import judge_with_decisions, judged_alone, rows_seen
from labelclean.correction.policy import Policy
from labelclean.correction.result import Audit
from labelclean.correction.sample import Judged, by_row
from labelclean.data.manifest import Manifest
from labelclean.errors import DataError
from labelclean.evidence.value import Evidence
from labelclean.options import Log
from labelclean.outputs.run_folder import RECORDS
from labelclean.runs.decisions_file import read_heard
from labelclean.runs.evidence_store import read_evidence
from labelclean.runs.folder import RUN
from labelclean.runs.issues import BESIDE, read_findings, read_run_table, require_rows
from labelclean.runs.reading import OpenedRun, open_audited, read_facts


@dataclass(frozen=True, slots=True)
class Alone:
    """What a run itself said before anybody answered, and what it had been told.

    Args:
        judged: Its own judgement.
        people: Decisions that the audit was told.
        seen: Rows of them that its evidence has learned from.
    """

    judged: Judged
    people: Decisions
    seen: NDArray[np.int64]


def judge_again(
    run: OpenedRun, decisions: Path | None = None, facts: Mapping[str, object] | None = None
) -> tuple[Audit, int]:
    """Judge a run again; give the result and how many decisions went into it.

    Args:
        run: The run.
        decisions: What people decided since; None: nothing new.
        facts: Plain data to carry into run.json.

    Raises:
        DataError: A file of the run is missing or belongs to another, or is no decisions.
    """
    evidence = stored_evidence(run)
    heard = Heard() if decisions is None else read_heard(decisions, run.manifest)
    heard = Heard(heard.decisions, heard.known, heard.lines, heard.judgement, _inherited(run))
    count = len({**evidence.people, **heard.decisions})
    return judge_with_decisions(run.manifest, evidence, facts or {}, _policy(run), heard), count


def findings_with(run: OpenedRun, decisions: Path | None) -> Findings:
    """Give what a run found, corrected by what people decided where that is given.

    Raises:
        DataError: As `judge_again` and `read_findings`.
    """
    if decisions is None:
        return read_findings(run)
    found = judge_again(run, decisions)[0]
    return Findings(
        found.row,
        found.suggested,
        found.action,
        found.p_error,
        found.p_suggested,
        beside={name: found.beside[name] for name in BESIDE},
    )


def judged_without_people(run: OpenedRun) -> Alone:
    """Give what a run said before anybody answered, whatever its tables say now.

    Raises:
        DataError: A file of the run is missing or belongs to another.
    """
    if not run.facts.get("decisions"):
        found = read_findings(run)
        columns = (found.row, found.action, found.suggested, found.p_error, found.p_suggested)
        return Alone(by_row(*columns), {}, np.zeros(0, np.int64))
    evidence = stored_evidence(run)
    alone = judge_evidence(run.manifest, evidence, {}, policy=_policy(run))
    return Alone(judged_alone(alone), evidence.people, rows_seen(evidence))


def earlier_answers(
    decisions: Path | None, manifest: Manifest, log: Log
) -> Mapping[str, object] | None:
    """Give what a run beside a file of decisions knows from them about the same rows.

    None where there is no such run, it is about other rows, or no random sample was answered.
    """
    if decisions is None or not (decisions.parent / RUN).is_file():
        return None
    folder = decisions.parent
    try:
        if read_facts(folder)["input"]["digest"] != manifest.digest:
            return None
        found = judge_again(open_audited(folder, manifest.source), decisions)[0].answers
    except DataError as error:
        log(f"Note: the run beside {decisions} tells nothing of the noise rate ({error})")
        return None
    return found if found is not None and found["sampled"] else None


def stored_evidence(run: OpenedRun) -> Evidence:
    """Read the evidence of a run.

    Raises:
        DataError: It is missing, damaged, or not about this run's rows.
    """
    path = run.folder / RECORDS
    read_run_table(path, run.facts)
    evidence = read_evidence(path)
    row, probs = evidence.row, evidence.probs
    unseen = np.array([*evidence.unreadable], np.int64)
    require_rows(path, np.concatenate([row, unseen, evidence.left_out]), run)
    sound = probs.shape == (len(row), len(run.manifest.classes)) and probs.dtype.kind == "f"
    if not sound or not ((probs >= 0) & (probs <= 1.001)).all():
        raise DataError(f"{path} holds no probabilities of these classes; audit the data again.")
    return evidence


def _inherited(run: OpenedRun) -> Mapping[str, object] | None:
    """Give the estimate that an audit brought from an earlier run, as its run.json keeps it."""
    found = run.facts.get("answers")
    if not isinstance(found, dict) or not found.get("inherited"):
        return None
    bounds = found.get("noise_interval")
    numbers = [found.get("noise_rate"), *(bounds if isinstance(bounds, list) else [])]
    if len(numbers) != 3 or not all(isinstance(one, float | int) for one in numbers):
        raise DataError(f"{run.folder / RUN} holds no estimate of labelclean; audit again.")
    return found


def _policy(run: OpenedRun) -> Policy:
    try:
        return Policy(**run.facts["recipe"]["correction"])
    except (TypeError, KeyError) as error:
        raise DataError(f"{run.folder / RUN} holds no policy of labelclean ({error}).") from error
