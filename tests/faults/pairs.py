"""Two commands at once, the second at a random moment of the first; sometimes one is killed.

`PYTHONPATH=tests python -m faults.pairs --pairs 300 --kills 100`

Whoever comes second is refused with a message, waits, or reads one whole run. Afterwards every run
folder is whole (`labelclean verify`), nothing is left over, and no file is of two runs. A command
that was killed is given once more and must come to its end.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from faults.pair_scenes import MEETINGS, WRITES, Meeting, Place
from faults.started import Started, pause, start, wait_for
from faults.table import warm_up
from labelclean.errors import LabelCleanError
from labelclean.runs.folder import RunFolder
from labelclean.runs.verify import verify_run

KILLED, INTERRUPTED = -9, 130
LEFT_OVER = ("*.part", "*.lock", ".work", ".*.aside")


@dataclass
class Tally:
    """What came of the pairs; `faults` must be empty."""

    counts: Counter = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class Pairs:
    """Lets commands meet.

    Args:
        stage: Folder for everything.
        seed: Of the pairs and the moments.
    """

    def __init__(self, stage: Path, seed: int = 0) -> None:
        self.place, self.rng = Place(stage), np.random.default_rng(seed)
        self.tally = Tally()
        self._known: dict[tuple[str, ...], bytes | None] = {}
        self._took: dict[tuple[str, str], float] = {}

    def meet_all(self, pairs: int, kills: int) -> Tally:
        """Draw pairs, every one as often as the others, and let them meet."""
        every = [(m, a, b) for m in MEETINGS for a in m.commands for b in m.commands]
        for count, kill in ((pairs, False), (kills, True)):
            order = np.concatenate(
                [self.rng.permutation(len(every)) for _ in range(count // len(every) + 1)]
            )
            for at in order[:count]:
                meeting, first, second = every[at]
                faults = self.meet(meeting, first, second, kill=kill)
                self.tally.faults += faults
                sys.stderr.write("\n".join([json.dumps(self.tally.counts), *faults, ""]))
        return self.tally

    def meet(self, meeting: Meeting, first: str, second: str, *, kill: bool) -> list[str]:
        """Let two commands meet once; give what is wrong."""
        took = self._duration(meeting, first)
        allowed = [self._allowed(meeting, one, other) for one, other in
                   ((first, second), (second, first))]  # fmt: skip
        folder = self.place.lay_out(meeting)
        words = [self.place.stage / name for name in ("first.txt", "second.txt")]
        one = start(first, meeting.commands[first](folder), words[0])
        pause(self.rng.uniform(0, took), one)
        two = start(second, meeting.commands[second](folder), words[1])
        if kill:
            pause(self.rng.uniform(0, took), one, two)
            (one if one.code is None and self.rng.random() < 0.6 else two).kill()
        wait_for(one, two)
        faults = [*_ending(one), *_ending(two)]
        for ended, contents in zip((one, two), allowed, strict=True):
            faults += _written(ended, folder, contents)
        killed = [ended.name for ended in (one, two) if ended.code == KILLED]
        self.tally.counts["kills" if killed else "pairs"] += 1
        self.tally.counts.update(_outcome(ended) for ended in (one, two))
        faults += _whole(meeting, folder, (one, two), unfinished=bool(killed))
        for name in killed:
            faults += self._again(meeting, name)
        what = f"{meeting.name}: {first} ({one.code}) and {second} ({two.code})"
        return [f"{what}: {fault}" for fault in faults]

    def _again(self, meeting: Meeting, name: str) -> list[str]:
        """Give a command that was killed once more."""
        folder = self.place.here
        again = start(name, meeting.commands[name](folder), self.place.stage / "again.txt")
        wait_for(again)
        if again.code:
            return [f"{name} could not go on: exit {again.code}: {again.text[-400:]}"]
        return _whole(meeting, folder, (again,), unfinished=False)

    def _duration(self, meeting: Meeting, name: str) -> float:
        if (meeting.name, name) not in self._took:
            self._took[meeting.name, name] = self.place.once(meeting, name)
        return self._took[meeting.name, name]

    def _allowed(self, meeting: Meeting, name: str, other: str) -> list[bytes | None]:
        """Give what a command writes before and after the other one, nobody disturbing it."""
        if not meeting.exact or name not in WRITES:
            return []
        for before in ("", other):
            if (name, before) not in self._known:
                folder = self.place.lay_out(meeting)
                for step in filter(None, (before, name)):
                    self.place.run(step, meeting.commands[step](folder))
                self._known[name, before] = (folder / WRITES[name]).read_bytes()
        return [self._known[name, ""], self._known[name, other]]


def _outcome(ended: Started) -> str:
    if ended.code == 1 and "is in use" in ended.text:
        return "refused, somebody writes"
    return {0: "done", 1: "failed with a message", 3: "refused what it read", KILLED: "killed",
            INTERRUPTED: "interrupted"}.get(int(ended.code or 0), "other")  # fmt: skip


def _ending(ended: Started) -> list[str]:
    text = ended.text
    # A review that does not answer in time is ended by Ctrl-C before it began to serve.
    ends = (0, 1, 3, KILLED, *((INTERRUPTED,) if ended.name == "review" else ()))
    if "Traceback" in text or ended.code not in ends:
        return [f"{ended.name}: exit {ended.code}: {text[-1500:]}"]
    if ended.code in (1, 3) and "Error: " not in text and '"error"' not in text:
        return [f"{ended.name}: failed without a word: {text[-300:]}"]
    return []


def _written(ended: Started, folder: Path, allowed: list[bytes | None]) -> list[str]:
    if ended.code or not allowed:
        return []
    path = folder / WRITES[ended.name]
    if path.is_file() and path.read_bytes() in allowed:
        return []
    return [f"{ended.name} wrote what is of no single run"]


def _whole(
    meeting: Meeting, folder: Path, ended: tuple[Started, ...], *, unfinished: bool
) -> list[str]:
    """Look at every run folder, at decisions that were acknowledged, and at what is left over."""
    faults = []
    for run in (folder / name for name in meeting.runs):
        complete = RunFolder(run).complete
        if complete:
            try:
                faults += verify_run(run).faults
            except LabelCleanError as error:
                faults.append(str(error))
        elif run.is_dir() and not unfinished:
            faults.append(f"{run.name} holds no finished run")
    saved = folder / "run/decisions.jsonl"
    lines = saved.read_bytes().count(b"\n") if saved.is_file() else 0
    faults += [
        f"{one.acknowledged} decisions were acknowledged, {lines} are there"
        for one in ended
        if (one.acknowledged or 0) > lines
    ]
    left = [] if unfinished else [path for name in LEFT_OVER for path in folder.rglob(name)]
    # Beside a target of the user's own choice nobody but the user may remove anything.
    left = [path.name for path in left if path.parent != folder or path.suffix != ".part"]
    return faults + [f"{name} is left over" for name in left]


def main() -> int:
    """Print the tally; exit code 1 where a folder was mixed or a command broke."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    warm_up()
    with tempfile.TemporaryDirectory() as name:
        tally = Pairs(Path(name).resolve(), asked.seed).meet_all(asked.pairs, asked.kills)
    facts = {**tally.counts, "bad": tally.faults}
    sys.stdout.write(json.dumps(facts, indent=1) + "\n")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
