"""Data that changes under a running audit: swapped, cut, grown, gone, at a random moment.

`PYTHONPATH=tests python -m faults.moving --changes 60`

An audit ends with rows that are all of one state of the data, or with a message; once the data is
as it was, the same command gives the undisturbed result.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from faults.pair_scenes import MEETINGS, Place
from faults.started import pause, start, wait_for
from faults.table import warm_up
from labelclean.runs.folder import RunFolder
from labelclean.runs.verify import verify_run

CACHE = next(meeting for meeting in MEETINGS if meeting.name == "cache")
AUDIT = "audit of pictures"
Change = Callable[[Path, np.random.Generator], None]


def _picture(data: Path, rng: np.random.Generator) -> Path:
    return data / f"images/{rng.integers(90)}.png"


def swap(data: Path, rng: np.random.Generator) -> None:
    """Let two pictures change places."""
    one, other = data / "images/7.png", _picture(data, rng)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def delete(data: Path, rng: np.random.Generator) -> None:
    """Remove a picture."""
    _picture(data, rng).unlink()


def cut(data: Path, rng: np.random.Generator) -> None:
    """Cut a picture in two."""
    path = _picture(data, rng)
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size // 2)


def grow(data: Path, rng: np.random.Generator) -> None:
    """Append to a picture."""
    with _picture(data, rng).open("ab") as file:
        file.write(bytes(100))


def relabel(data: Path, _: np.random.Generator) -> None:
    """Put another table in the place of the audited one."""
    lines = (data / "digits.csv").read_text().splitlines()
    lines[1:9] = [line.replace(",zero,", ",two,") for line in lines[1:9]]
    (data / "new.csv").write_text("\n".join([*lines, ""]))
    (data / "new.csv").replace(data / "digits.csv")


def add_row(data: Path, _: np.random.Generator) -> None:
    """Append a row to the table."""
    with (data / "digits.csv").open("a") as file:
        file.write("images/3.png,one,one,train\n")


def delete_table(data: Path, _: np.random.Generator) -> None:
    """Remove the table."""
    (data / "digits.csv").unlink()


def move_folder(data: Path, _: np.random.Generator) -> None:
    """Rename the folder of the pictures."""
    (data / "images").rename(data / "elsewhere")


def lose_cache(data: Path, _: np.random.Generator) -> None:
    """Remove the cache."""
    shutil.rmtree(data.parent / "cache", ignore_errors=True)


def lose_run(data: Path, _: np.random.Generator) -> None:
    """Remove the run folder that is written into."""
    shutil.rmtree(data.parent / "one", ignore_errors=True)


CHANGES: tuple[Change, ...] = (
    swap, delete, cut, grow, relabel, add_row, delete_table, move_folder, lose_cache, lose_run,
)  # fmt: skip


class Moving:
    """Changes data under running audits.

    Args:
        stage: Folder for everything.
        seed: Of what changes, and when.
    """

    def __init__(self, stage: Path, seed: int = 0) -> None:
        self.place, self.rng = Place(stage), np.random.default_rng(seed)
        self.counts: Counter[str] = Counter()
        self._took = self.place.once(CACHE, AUDIT)
        self._known = self._issues()

    def _issues(self) -> bytes:
        return (self.place.here / "one/issues.parquet").read_bytes()

    def change(self, change: Change) -> list[str]:
        """Change something once, look at the end, restore, and audit again."""
        folder = self.place.lay_out(CACHE)
        words = CACHE.commands[AUDIT](folder)
        one = start(AUDIT, words, self.place.stage / "first.txt")
        pause(self.rng.uniform(0, 1.1 * self._took), one)
        change(folder / "pictures", self.rng)
        wait_for(one)
        faults = []
        if "Traceback" in one.text or one.code not in (0, 1, 3):
            faults.append(f"exit {one.code}: {one.text[-800:]}")
        self.counts["done" if one.code == 0 else "ended with a message"] += 1
        complete = RunFolder(folder / "one").complete
        if one.code == 0 and not complete and change is not lose_run:
            faults.append("it is called done and is not")
        after = self._strange(folder) if complete else []
        shutil.rmtree(folder / "pictures")
        shutil.copytree(self.place.stage / "pictures", folder / "pictures")
        if complete and after and self._strange(folder):
            # Its rows are neither all of the state before nor all of the one after.
            faults.append(f"of no state of the data: {after}, {self._strange(folder)}")
        again = start(AUDIT, words, self.place.stage / "again.txt")
        wait_for(again)
        if again.code or self._issues() != self._known:
            faults.append(f"not the same when all was restored: exit {again.code}")
        return [f"{change.__name__}: {fault}" for fault in faults]

    def _strange(self, folder: Path) -> list[str]:
        """Say what of a finished run is not of the data as it is now."""
        verified = verify_run(folder / "one")
        notes = [note for note in verified.notes if "not compared" in note or "no longer" in note]
        rows = pq.read_table(folder / "one/issues.parquet").num_rows
        other = [] if rows in (90, 91) else [f"{rows} rows are audited"]
        return [*verified.faults, *notes, *other]


def main() -> int:
    """Print the counts; exit code 1 if a result was of two states of the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    warm_up()
    bad = []
    with tempfile.TemporaryDirectory() as name:
        moving = Moving(Path(name).resolve(), asked.seed)
        for at in range(asked.changes):
            faults = moving.change(CHANGES[at % len(CHANGES)])
            bad += faults
            sys.stderr.write("".join(f"{fault}\n" for fault in faults))
    sys.stdout.write(json.dumps({"changes": asked.changes, **moving.counts, "bad": bad}) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
