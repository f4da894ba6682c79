"""Judge a finished run again from its records, with what people decided since; no training."""

from pathlib import Path

from labelclean.atomic import folder_lock, one_writer
from labelclean.data.settings import DataSettings
from labelclean.options import Log
from labelclean.outputs.run_json import run_facts
from labelclean.outputs.truth import read_truth
from labelclean.runs.again import judge_again
from labelclean.runs.folder import RunFolder
from labelclean.runs.reading import open_audited
from labelclean.workflows.write import Run, write_judged

JUDGED = (
    "counts", "findings", "noise_rate", "noise_rate_interval", "class_noise", "noise_transition",
    "diagnosis", "signal_quality", "answers", "outlook",
)  # fmt: skip
"""What run.json says that follows from a judgement; everything else stays as it was."""

OBSERVED = (
    "seed", "loss", "backbone", "epochs", "held_out_accuracy", "held_out_leaks",
    "held_out_accuracy_without_leaks",
)  # fmt: skip
"""What run.json says about the observation that the report repeats."""


def report(
    folder: Path,
    *,
    manifest: Path | None = None,
    decisions: Path | None = None,
    wait: Log | None = None,
) -> Run:
    """Judge a run again and rewrite what follows from that; run.json goes first and comes last.

    Args:
        folder: The run folder.
        manifest: Where the audited manifest is now; None: where it was.
        decisions: What people decided; their labels count as verified, over what the audit was
            told already. None: nothing new.
        wait: Told for whom we wait to write into the folder; None: we do not.

    Raises:
        DataError: A file of the run is missing or belongs to another, or the manifest changed.
        OutputError: Another process writes into the folder.
    """
    lock = folder_lock(folder)
    with one_writer(lock, "report", wait=wait, needed=folder.is_dir()):
        return _report(folder, manifest, decisions)


def _report(folder: Path, manifest: Path | None, decisions: Path | None) -> Run:
    run = open_audited(folder, manifest, half_reported=True)
    facts = dict(run.facts)
    known = run.facts.get("truth")
    truth = None if not isinstance(known, dict) else read_truth(run.manifest, known["column"])
    seen = {name: facts[name] for name in OBSERVED if name in facts}
    found, count = judge_again(run, decisions, seen)
    RunFolder(folder).sweep()
    RunFolder(folder).set_aside()
    found = write_judged(found, folder, DataSettings(**facts["recipe"]["data"]), truth)
    fresh = run_facts(found)
    facts |= {name: fresh[name] for name in JUDGED}
    if truth is not None:
        facts["truth"] = found.facts["truth"]
    facts["reported"] = fresh["ran"]
    facts["decisions"] = count
    return Run(folder, found, RunFolder(folder).finish(facts))
