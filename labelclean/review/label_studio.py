"""Label Studio: suspects as tasks with predictions, completed annotations back as decisions.

A task shows the picture; the labels are choices, of which our suggestion is the prediction. A
second group of choices holds what is no label: none_of_these, drop, unsure. Pictures in files are
named the way Label Studio serves local files, with the image root as its document root; others
travel inside the task.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from labelclean import __version__
from labelclean.atomic import folder_lock, one_writer, write_bytes
from labelclean.correction.actions import KEEP, UNREADABLE
from labelclean.correction.decisions import (
    CONFIRM,
    GIVE_LABEL,
    LEAVE_OUT,
    NONE_OF_THESE,
    UNSURE,
    Decision,
    Decisions,
    check_decision,
    class_codes,
)
from labelclean.data.manifest import Manifest
from labelclean.errors import ConfigError, DataError, OutputError, shortlist
from labelclean.options import Log
from labelclean.review.journal import Journal
from labelclean.review.state import run_pictures
from labelclean.runs.issues import read_issues
from labelclean.runs.reading import OpenedRun, open_audited

TASKS, _CONFIG = ".labelstudio.json", ".labelstudio.xml"
LABEL, VERDICT, PICTURE = "label", "verdict", "picture"
NO_LABEL = (NONE_OF_THESE, LEAVE_OUT, UNSURE)
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_tasks(run: OpenedRun, target: Path, decided: Decisions, *, overwrite: bool) -> int:
    """Write the flagged, undecided rows as tasks, and the labelling interface beside them.

    Args:
        run: The run.
        target: The .labelstudio.json file; the interface goes into .labelstudio.xml.
        decided: Rows that need no task.
        overwrite: Replace what is there.

    Returns:
        How many tasks there are.
    """
    interface = target.with_name(target.name[: -len(TASKS)] + _CONFIG)
    taken = [str(path) for path in (target, interface) if path.exists()]
    if taken and not overwrite:
        raise ConfigError(
            f"{' and '.join(taken)} exists; pass --overwrite to replace it, or name another."
        )
    view, tasks = _interface(run.manifest).encode(), list(_tasks(run, decided))
    write_bytes(interface, view)
    write_bytes(target, (json.dumps(tasks, indent=1) + "\n").encode())
    return len(tasks)


def import_annotations(
    folder: Path,
    source: Path,
    manifest: Path | None,
    *,
    wait: Log | None = None,
) -> tuple[int, int]:
    """Add completed annotations to the decisions of a run: all of them, or none.

    Args:
        folder: The run folder.
        source: What Label Studio exported, as JSON.
        manifest: Where the audited manifest is now; None: where it was.
        wait: Told for whom we wait to write into the folder; None: we do not.

    Returns:
        How many decisions are new, and how many were known already.

    Raises:
        DataError: There is no run, or tasks are not about it; every such task is named.
        OutputError: Another process writes into the folder.
    """
    lock = folder_lock(folder)
    with one_writer(lock, "review --import", wait=wait, needed=folder.is_dir()):
        run = open_audited(folder, manifest)
        found = _read_annotations(source, run)
        with Journal(folder, run.manifest) as journal:
            current = journal.history.current
            fresh = [(row, made) for row, made in found.items() if current.get(row) != made]
            if fresh:
                journal.add_all(fresh)
    return len(fresh), len(found) - len(fresh)


def _tasks(run: OpenedRun, decided: Decisions) -> Iterator[dict[str, Any]]:
    pictures = run_pictures(run)
    inside = pictures is not None and not _in_files(run.manifest)
    for line in read_issues(run).to_pylist():
        row = line["row"]
        if line["action"] in (KEEP, UNREADABLE) or row in decided:
            continue
        data = {
            "row": row,
            "sample_id": line["sample_id"],
            "path": line["path"],
            "label_given": str(line["label_given"]),
            "action": line["action"],
            "p_error": line["p_error"],
            "reason": line["reason"],
            PICTURE: f"/data/local-files/?d={quote(line['path'] or '')}",
        }
        if pictures is None:
            data[PICTURE] = line["sample_id"]
        elif inside:
            shown = pictures.whole(row)
            code = base64.b64encode(shown.content).decode()
            data[PICTURE] = f"data:{shown.media_type};base64,{code}"
        choice = {
            "from_name": LABEL,
            "to_name": PICTURE,
            "type": "choices",
            "value": {"choices": [str(line["label_suggested"])]},
        }
        yield {
            "data": data,
            "meta": {"input_digest": run.manifest.digest},
            "predictions": [
                {
                    "model_version": f"labelclean {__version__}",
                    "score": line["p_suggested"],
                    "result": [choice],
                }
            ],
        }


def _in_files(manifest: Manifest) -> bool:
    if manifest.image_col is None:
        return False
    kind = manifest.table.schema.field(manifest.image_col).type
    return kind.num_fields == 0 and "binary" not in str(kind)


def _interface(manifest: Manifest) -> str:
    strange = [name for name in map(str, manifest.classes) if _NOT_IN_XML.search(name)]
    if strange:
        raise OutputError(
            f"Label Studio's interface is XML, which cannot hold the labels "
            f"{shortlist(map(repr, strange))}; rename them in the data and audit again."
        )
    kind = "Image" if manifest.has_images else "Text"
    lines = ["<View>", f'  <{kind} name="{PICTURE}" value="${PICTURE}"/>']
    for name, choices in ((LABEL, map(str, manifest.classes)), (VERDICT, NO_LABEL)):
        lines.append(f'  <Choices name="{name}" toName="{PICTURE}" choice="single">')
        lines += [f"    <Choice value={quoteattr(choice)}/>" for choice in choices]
        lines.append("  </Choices>")
    return "\n".join([*lines, "</View>", ""])


def _read_annotations(source: Path, run: OpenedRun) -> dict[int, Decision]:
    try:
        tasks = json.loads(source.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{source} cannot be read as JSON: {error}.") from error
    if not isinstance(tasks, list):
        raise DataError(f"{source} is no list of tasks; export from Label Studio as JSON.")
    codes = class_codes(run.manifest)
    found: dict[int, Decision] = {}
    faults = []
    for number, task in enumerate(tasks, 1):
        try:
            made = _decided(task, run.manifest, codes)
        except ValueError as error:
            faults.append(f"task {number}: {error}")
            continue
        if made is None:
            continue
        row, decision = made
        if found.setdefault(row, decision) != decision:
            faults.append(f"task {number}: row {row} was decided otherwise in an earlier task")
    if faults:
        raise DataError(
            f"{source} holds {len(faults)} tasks that are no decisions about "
            f"{run.manifest.source.name} ({shortlist(faults)}). Correct or remove them; nothing "
            "was taken over."
        )
    return found


def _decided(
    task: object, manifest: Manifest, codes: Mapping[str, int]
) -> tuple[int, Decision] | None:
    """Give what a task decides; None if nobody completed it."""
    if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
        raise ValueError("not a task")
    meta = task.get("meta")
    about = meta.get("input_digest") if isinstance(meta, dict) else None
    if about not in (None, manifest.digest):
        raise ValueError(f"about another input ({about})")
    annotations = task.get("annotations")
    if not isinstance(annotations, list):
        raise ValueError("no list of annotations (export as JSON, not as JSON-MIN)")
    if not all(isinstance(one, dict) for one in annotations):
        raise ValueError("an annotation is no object")
    done = [one for one in annotations if not one.get("was_cancelled")]
    final = [one for one in done if one.get("ground_truth")] or done
    made = {_one(one, task["data"], manifest, codes) for one in final}
    if len(made) > 1:
        raise ValueError("annotators disagree; mark one annotation as ground truth")
    return made.pop() if made else None


def _one(
    annotation: Mapping[str, Any],
    data: Mapping[str, Any],
    manifest: Manifest,
    codes: Mapping[str, int],
) -> tuple[int, Decision]:
    chosen: dict[str, str] = {}
    results = annotation.get("result")
    for result in results if isinstance(results, list) else []:
        name = result.get("from_name") if isinstance(result, dict) else None
        value = result.get("value") if name in (LABEL, VERDICT) else None
        choices = value.get("choices") if isinstance(value, dict) else None
        if not isinstance(choices, list) or len(choices) != 1 or name in chosen:
            raise ValueError(f"not one choice for {LABEL} or {VERDICT}: {str(result)[:100]}")
        chosen[str(name)] = choices[0]
    if len(chosen) != 1:
        raise ValueError(f"give either a {LABEL} or a {VERDICT}; found {sorted(chosen)}")
    verdict = chosen.get(VERDICT, GIVE_LABEL)
    if verdict not in (*NO_LABEL, GIVE_LABEL):
        raise ValueError(f"verdict {verdict!r} is none of {', '.join(NO_LABEL)}")
    entry = {**data, "decision": verdict, "label": chosen.get(LABEL)}
    row, decision = check_decision(entry, manifest, codes)
    if decision.label is not None and decision.label == manifest.label[row]:
        return row, Decision(CONFIRM, None)
    return row, decision
