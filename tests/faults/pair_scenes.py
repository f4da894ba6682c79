"""What two commands at once may be, and where they meet."""

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from faults.scenes import QUIET
from faults.started import start, wait_for
from finished_runs import small, write_features, write_pictures

Arguments = Callable[[Path], list[object]]


def _audit(*flags: object, out: str = "run") -> Arguments:
    return lambda folder: ["audit", folder / "digits.npz", "--out", folder / out, *QUIET,
                           *_placed(folder, flags)]  # fmt: skip


def _on_run(name: str, *flags: object) -> Arguments:
    return lambda folder: [name, folder / "run", *_placed(folder, flags)]


def _placed(folder: Path, flags: tuple[object, ...]) -> list[object]:
    """Put names that begin with @ into the folder."""
    return [folder / flag[1:] if str(flag).startswith("@") else flag for flag in flags]


def _export(target: str, *flags: object) -> Arguments:
    return _on_run("export", f"@{target}", *flags, "--overwrite", "--quiet")


def _pictures(out: str) -> Arguments:
    return lambda folder: ["audit", folder / "pictures/digits.csv", "--out", folder / out,
                           *small(folder / "cache"), *QUIET, "--overwrite"]  # fmt: skip


HEAD = ("--loss", "gce", "--epochs", 2)
DECISIONS = "@run/decisions.jsonl"
FOLDER: Mapping[str, Arguments] = {
    "audit": _audit(*HEAD, "--overwrite"),
    "audit, other seed": _audit("--loss", "cce", "--epochs", 3, "--seed", 7, "--overwrite"),
    "audit --resume": _audit(*HEAD, "--resume"),
    "audit --wait": _audit(*HEAD, "--overwrite", "--wait"),
    "audit --rounds": _audit(*HEAD, "--rounds", 2, "--overwrite"),
    "report": _on_run("report", "--decisions", "@given.jsonl", "--quiet"),
    "report --wait": _on_run("report", "--decisions", "@given.jsonl", "--quiet", "--wait"),
    "retrain": _on_run("retrain", *QUIET, "--overwrite"),
    "export .npz": _export("out.npz"),
    "export .npz --wait": _export("out.npz", "--wait"),
    "export of tasks": _export("out.labelstudio.json"),
    "export .patch.jsonl": _export("out.patch.jsonl"),
    "predict": _on_run("predict", "@digits.npz", "--out", "@said.parquet", *QUIET),
    "verify": _on_run("verify"),
    "review": _on_run("review", "--no-open", "--json", "--quiet"),
    "review --import": _on_run("review", "--import", "@back.json"),
}
"""Commands that meet on one run folder."""
CACHE: Mapping[str, Arguments] = {
    "audit of pictures": _pictures("one"),
    "the same pictures": _pictures("two"),
    "cache clear": lambda folder: ["cache", "clear", "--cache-dir", folder / "cache"],
    "cache show": lambda folder: ["cache", "show", "--cache-dir", folder / "cache"],
}
"""Commands that meet on one feature cache."""
ANSWERS: Mapping[str, Arguments] = {
    "review": FOLDER["review"],
    "review --import": FOLDER["review --import"],
    "report --decisions": _on_run("report", "--decisions", DECISIONS, "--quiet"),
    "export --decisions": _export("out.npz", "--decisions", DECISIONS),
    "retrain --decisions": _on_run("retrain", "--decisions", DECISIONS, *QUIET, "--overwrite"),
    "audit --decisions": _audit(*HEAD, "--decisions", DECISIONS, "--overwrite", out="next"),
}
"""Commands that meet on one file of decisions."""
WRITES = {
    "export .npz": "out.npz", "export .npz --wait": "out.npz", "predict": "said.parquet",
    "export of tasks": "out.labelstudio.json", "export .patch.jsonl": "out.patch.jsonl",
}  # fmt: skip
"""Files that follow from one whole run."""


@dataclass(frozen=True)
class Meeting:
    """Where commands meet.

    Args:
        name: What they meet on.
        commands: The commands, by name.
        needs: What is copied there first.
        runs: Run folders that must be whole afterwards, where they are.
        exact: What is written follows from which of the two came first.
    """

    name: str
    commands: Mapping[str, Arguments]
    needs: tuple[str, ...]
    runs: tuple[str, ...] = ("run",)
    exact: bool = False


MEETINGS = (
    Meeting("folder", FOLDER, ("digits.npz", "run", "given.jsonl", "back.json"), exact=True),
    Meeting("cache", CACHE, ("pictures",), ("one", "two")),
    Meeting(
        "decisions", ANSWERS, ("digits.npz", "decided/run", "back.json"), ("run", "next")
    ),
)  # fmt: skip


@dataclass
class Place:
    """Data, a finished run and one with decisions; every trial gets a copy in the same folder."""

    stage: Path
    here: Path = field(init=False)

    def __post_init__(self) -> None:
        self.here = self.stage / "here"
        write_features(self.stage / "digits.npz")
        write_pictures(self.stage / "pictures")
        rows = [{"row": row, "sample_id": str(row), "decision": "drop"} for row in (20, 40)]
        (self.stage / "given.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.stage / "back.json").write_text("[]")
        self.once(Meeting("", FOLDER, ("digits.npz",)), "audit")
        shutil.copytree(self.here / "run", self.stage / "run")
        self._annotate()
        (self.stage / "decided").mkdir()
        shutil.copytree(self.stage / "run", self.stage / "decided/run")
        shutil.copy(self.stage / "given.jsonl", self.stage / "decided/run/decisions.jsonl")

    def _annotate(self) -> None:
        """Complete the tasks of the run as Label Studio would."""
        tasks = self.here / "tasks.labelstudio.json"
        self.run("export", ["export", self.here / "run", tasks])
        choice = {"from_name": "verdict", "to_name": "picture", "type": "choices"}
        result = [{**choice, "value": {"choices": ["unsure"]}}]
        back = [
            {**task, "id": at, "annotations": [{"result": result}]}
            for at, task in enumerate(json.loads(tasks.read_bytes())[:4])
        ]
        (self.stage / "back.json").write_text(json.dumps(back))

    def lay_out(self, meeting: Meeting) -> Path:
        """Copy what the commands need into the folder, which is made anew."""
        shutil.rmtree(self.here, ignore_errors=True)
        self.here.mkdir()
        for name in meeting.needs:
            source, target = self.stage / name, self.here / Path(name).name
            copy = shutil.copytree if source.is_dir() else shutil.copyfile
            copy(source, target)
        return self.here

    def once(self, meeting: Meeting, name: str) -> float:
        """Run one command undisturbed; give how long it took."""
        return self.run(name, meeting.commands[name](self.lay_out(meeting)))

    def run(self, name: str, words: list[object]) -> float:
        """Run a command to its end; give how long it took."""
        one = start(name, words, self.stage / "words.txt")
        wait_for(one)
        if one.code:
            raise RuntimeError(f"{name}: exit {one.code}: {one.text[-2000:]}")
        return time.perf_counter() - one.began
