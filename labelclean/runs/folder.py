"""The run folder: who may write there, what a run that died left behind, when it is complete."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelclean.atomic import (
    LOCK,
    atomic_path,
    remove,
    remove_left_over,
    sync_folder,
    write_bytes,
)
from labelclean.errors import ConfigError, DataError, OutputError, shortlist
from labelclean.runs.digests import MODEL, OUTPUTS, RETRAIN, ROUND_FOLDERS, file_digests

RUN = "run.json"
_WORK, _KEY, _ASIDE = ".work", "key.json", "run.json"


class RunFolder:
    """A folder that one run writes into.

    Args:
        folder: The run folder.
        leads: Whether this process is the one that writes; others only look.
    """

    def __init__(self, folder: Path, leads: bool = True) -> None:
        self.folder, self.leads = folder, leads
        self.work = folder / _WORK
        self.aside = self.work / _ASIDE

    @property
    def complete(self) -> bool:
        """Whether a run ended here."""
        return (self.folder / RUN).is_file()

    @property
    def ours(self) -> bool:
        """Whether a run began here."""
        return self.complete or self.work.is_dir()

    @property
    def half_reported(self) -> bool:
        """Whether `labelclean report` was stopped here: files may be of two judgements."""
        return not self.complete and self.aside.is_file()

    def check(self, *, resume: bool, overwrite: bool) -> None:
        """Refuse a folder that is in use for something else, before anything dear is done.

        Raises:
            ConfigError: It holds a run, or other people's files, and no flag says what to do.
        """
        if resume and overwrite:
            raise ConfigError("--resume and --overwrite exclude each other; give one of them.")
        if self.folder.exists() and not self.folder.is_dir():
            raise ConfigError(f"--out {self.folder} is a file; give a folder.")
        if not self.folder.is_dir() or all(path.name == LOCK for path in self.folder.iterdir()):
            return
        if not self.ours:
            raise ConfigError(
                f"--out {self.folder} holds files that are not a run of labelclean; give a new "
                "or empty folder."
            )
        if self.half_reported and not overwrite:
            raise ConfigError(
                f"{self.folder} holds a finished audit whose report was stopped. Use `labelclean "
                f"report {self.folder}` to end it, or --overwrite to replace it."
            )
        if not overwrite and not resume:
            state = "a finished run" if self.complete else "a run that did not end"
            remedy = "" if self.complete else "--resume to go on with it, "
            raise ConfigError(
                f"{self.folder} holds {state}. Use {remedy}--overwrite to replace it, or --out to "
                "write elsewhere."
            )

    def claim(self, settings: Mapping[str, object], *, resume: bool) -> bool:
        """Make the folder ready; give whether there is work to go on with.

        Args:
            settings: Everything the result depends on.
            resume: Go on with what is there.

        Raises:
            ConfigError: What is there was made with other settings.
            DataError: What is there is damaged.
        """
        text = json.dumps(settings, sort_keys=True, default=str)
        key = hashlib.sha256(text.encode()).hexdigest()
        path = self.work / _KEY
        if resume and path.is_file():
            found = _read_key(path)
            if found["key"] != key:
                changed = changed_settings(found["settings"], json.loads(text))
                raise ConfigError(
                    f"{self.folder} cannot be resumed: it was begun with other settings "
                    f"({shortlist(changed)}). Use those again, or --overwrite."
                )
            if self.leads:
                self.sweep()
            return True
        if self.leads:
            # Whenever we are killed, the folder can be seen to be ours, and nothing in it passes
            # for something to go on with: the marks of success and of what can be resumed go
            # first. A model retrained on the labels of the run before is no longer its own.
            self.work.mkdir(parents=True, exist_ok=True)
            for mark in (self.folder / RUN, self.folder / RETRAIN / RUN, path):
                mark.unlink(missing_ok=True)
            for left in self.work.iterdir():
                remove(left)
            self._clear()
            content = {"key": key, "settings": json.loads(text)}
            write_bytes(path, json.dumps(content, indent=1).encode())
        return False

    def keep_input(self, held: Path | None) -> None:
        """Move samples that came from a program's memory into the folder, to be read again."""
        if held is not None and self.leads:
            with atomic_path(self.folder / held.name) as temporary:
                shutil.copyfile(held, temporary)

    def sweep(self) -> None:
        """Remove what a process that was killed left half written."""
        for place in (self.folder, self.folder / MODEL, self.work):
            remove_left_over(place)

    def _clear(self) -> None:
        """Remove what an earlier run left, which this one may not write anew."""
        rounds = [path.name for path in self.folder.glob(ROUND_FOLDERS) if RunFolder(path).ours]
        for name in (*OUTPUTS, RETRAIN, *rounds):
            remove(self.folder / name)
        remove_left_over(self.folder)

    def set_aside(self) -> None:
        """Take run.json away before files of a finished run are replaced; `finish` brings it back.

        Whoever comes while some are new and some old finds no finished run.
        """
        if self.complete:
            self.work.mkdir(exist_ok=True)
            (self.folder / RUN).replace(self.aside)
            sync_folder(self.work)
            sync_folder(self.folder)

    def finish(self, facts: Mapping[str, object]) -> dict[str, object]:
        """Write run.json, which marks success, and remove what only a resumed run needs.

        Returns:
            What it says: the facts, and the digest of every file they are about.

        Raises:
            OutputError: The folder was removed meanwhile, and what came before with it.
        """
        if not any((self.work / mark).is_file() for mark in (_KEY, _ASIDE)):
            raise OutputError(
                f"{self.folder} was removed or emptied while this run wrote into it, so not all of "
                "its files are there. Start again, with --overwrite."
            )
        whole = {**facts, "files": file_digests(self.folder)}
        content = json.dumps(whole, indent=2, ensure_ascii=False, default=str) + "\n"
        write_bytes(self.folder / RUN, content.encode())
        shutil.rmtree(self.work, ignore_errors=True)
        return whole


def require_same_content(work: Path, digest: NDArray[np.uint8], leads: bool) -> None:
    """Refuse to go on with a run whose pictures have changed; remember them in a new one.

    Args:
        work: The run's working folder.
        digest: (N, 32) content of every sample.
        leads: Whether this process writes.

    Raises:
        ConfigError: They are not those the run began with.
    """
    path = work / "content.txt"
    found = hashlib.sha256(digest.tobytes()).hexdigest()
    if path.is_file() and path.read_text(encoding="utf-8") != found:
        raise ConfigError(
            f"the run in {work.parent} cannot be resumed: some images have changed since it began. "
            "Restore them, or begin again with --overwrite."
        )
    if leads:
        write_bytes(path, found.encode())


def _read_key(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {"key": found["key"], "settings": found["settings"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{path} is damaged ({type(error).__name__}: {error}), so it cannot be told what was "
            "begun there; begin again with --overwrite."
        ) from error


def changed_settings(before: object, after: object, name: str = "") -> list[str]:
    """Say which entries of plain settings differ, by their dotted names."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted({*before, *after})
        parts = [
            changed_settings(before.get(k), after.get(k), f"{name}.{k}".strip(".")) for k in keys
        ]
        return [entry for part in parts for entry in part]
    return [] if before == after else [f"{name} was {before!r}, is {after!r}"]
