"""Which files a finished run stands for: run.json names the digest of each of them."""

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from labelclean.errors import DataError, shortlist

MODEL, RETRAIN, ROUND_FOLDERS = "model", "retrain", "round-*"
OBSERVED_FILES = ("records.parquet", "input.parquet", "input.npz")
"""Files, beside the model, that a new judgement of the run reads and leaves as they are."""
JUDGED_FILES = (
    "issues.parquet", "corrected.parquet", "report.html",
    "confusion_given_suggested.csv", "confusion_given_suggested.png",
    "confusion_given_true.csv", "confusion_given_true.png",
    "confusion_corrected_true.csv", "confusion_corrected_true.png",
    "noise_transition.csv", "noise_transition.png",
)  # fmt: skip
"""Files that follow from a judgement and are written anew by every report."""
OUTPUTS = (*JUDGED_FILES, *OBSERVED_FILES, MODEL)
"""What a run may leave; a run that takes its place removes all of it, and nothing else but what
came after it: its retraining and its rounds."""
MODEL_FILES = ("model/model.safetensors", "model/config.json")
MODEL_CARD = "model/README.md"
"""The model card: people complete it by hand, so that readers do not ask whose it is."""


def own_files(folder: Path) -> list[str]:
    """Name the files of a run that are there, as seen from its folder."""
    named = (*JUDGED_FILES, *OBSERVED_FILES, *MODEL_FILES, MODEL_CARD)
    return [name for name in named if (folder / name).is_file()]


def file_digests(folder: Path) -> dict[str, str]:
    """Give the SHA-256 of every file of a run."""
    return {name: file_digest(folder / name) for name in own_files(folder)}


def file_digest(path: Path) -> str:
    """Give the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def foreign_files(
    folder: Path, facts: Mapping[str, Any], passed: Collection[str] = ()
) -> list[str]:
    """Name the files that are not those the run was finished with; one that is gone is no other's.

    Args:
        folder: The run folder.
        facts: What run.json says.
        passed: Files that may be others.
    """
    known = facts["files"]
    names = [name for name in own_files(folder) if name not in passed]
    return [name for name in names if known.get(name) != file_digest(folder / name)]


def require_own_files(
    folder: Path, facts: Mapping[str, Any], passed: Collection[str] = (MODEL_CARD,)
) -> None:
    """Refuse a folder in which files of another run, or changed ones, stand beside run.json.

    Args:
        folder: The run folder.
        facts: What run.json says.
        passed: Files that may be others.

    Raises:
        DataError: Files are not those the run was finished with.
    """
    names = foreign_files(folder, facts, passed)
    if names:
        raise DataError(
            f"{shortlist(folder / name for name in names)} does not belong to this run: run.json "
            "names another digest. It is of another run, or was changed. Put the run's own file "
            "back, or audit again."
        )
