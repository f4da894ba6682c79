"""The same hostile inputs given to others: `PYTHONPATH=tests python -m hostile_corpus.peers`.

cleanlab takes probabilities, timm's ImageDataset and cleanvision take folders of pictures. The
extra `benchmark` has cleanlab; `--cleanvision PYTHON` names an interpreter that has cleanvision.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

from gallery import build as build_gallery
from hostile_corpus import arrays
from hostile_corpus.case import Case, labels
from planted import command


def of_ours(case: Case) -> str:
    """What labelclean makes of a case."""
    done = command(*case.arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return f"traceback: {type(done.exception).__name__}"
    return "answer" if done.exit_code == 0 else "refused with a message"


def of_cleanlab(case: Case) -> str:
    """What cleanlab makes of the same probabilities, read as its users would read them."""
    from cleanlab.rank import get_label_quality_scores

    try:
        probs = np.load(case.foreign[1])
        scores = get_label_quality_scores(labels(), probs)
    except (ValueError, TypeError, OSError, EOFError, IndexError, AttributeError, MemoryError,
            AssertionError, SyntaxError) as error:  # fmt: skip
        return f"{type(error).__name__}"
    sound = bool(np.isfinite(scores).all() and (scores >= 0).all() and (scores <= 1).all())
    return "answer" if sound else "answer out of range"


def probabilities(folder: Path) -> list[tuple[str, str, str]]:
    """Name, ours, cleanlab's."""
    cases = [case for case in arrays.build(folder) if case.foreign and case.foreign[0] == "npy"]
    return [(case.name, of_ours(case), of_cleanlab(case)) for case in cases]


def pictures(folder: Path) -> tuple[int, set[str], dict[str, int]]:
    """Give the rows labelclean sees in a folder with damaged pictures, what it calls unreadable.

    And what timm's ImageDataset makes of it, counted.
    """
    (folder / "gallery").mkdir()
    build_gallery(folder / "gallery")
    target = folder / "folder"
    for number, source in enumerate(sorted((folder / "gallery/images").iterdir())):
        if source.is_symlink() or not source.is_file():
            continue
        place = target / f"c{number % 2}"
        place.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place / f"{number:03d}.png")
    done = command("check", target, "--json", "--workers", 1)
    facts = json.loads(done.output[done.output.index("{") :])
    unreadable = {entry["path"] for entry in facts["unreadable"]}
    return facts["rows"], unreadable, _timm(target)


def _timm(folder: Path) -> dict[str, int]:
    from timm.data import ImageDataset

    data = ImageDataset(str(folder))
    tally = Counter(rows=len(data))
    for row in range(len(data)):
        path, label = data.reader.samples[row]
        try:
            image, target = data[row]
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            tally["exception"] += 1
            continue
        try:
            with Image.open(path) as own:
                same = np.array_equal(np.asarray(own.convert("RGB")), np.asarray(image))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            same = False
        if not same:
            tally["replaced by another picture"] += 1
            tally["with another label"] += int(target != label)
    return dict(tally)


def _cleanvision(folder: Path, python: str, unreadable: set[str]) -> list[str]:
    """Say what cleanvision makes of the folder, and of every picture alone."""
    script = Path(__file__).with_name("cleanvision_alone.py")
    done = subprocess.run(
        [python, str(script), str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return [f"no answer: {(done.stderr.splitlines() or ['nothing said'])[-1]}"]
    found = json.loads(done.stdout.splitlines()[-1])
    raised = {Path(name).name for name, error in found["alone"].items() if error}
    ours = {Path(name).name for name in unreadable}
    kinds = Counter(error.split(":")[0] for error in found["alone"].values() if error)
    return [
        f"the whole folder: {found['together'] or 'goes through'}",
        f"each alone: raises on {len(raised)} of {len(found['alone'])} ({dict(kinds)}); of our "
        f"{len(ours)} unreadable ones it raises on {len(raised & ours)} and passes "
        f"{len(ours - raised)}; {len(raised - ours)} that we read it does not",
    ]


def main() -> int:
    """Print both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cleanvision", metavar="PYTHON", help="interpreter with cleanvision")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = ["| probabilities | labelclean | cleanlab |", "|---|---|---|"]
        found = probabilities(folder / "arrays")
        lines += [f"| {case} | {ours} | {theirs} |" for case, ours, theirs in found]
        rows, unreadable, timm = pictures(folder)
        lines += ["", f"pictures, labelclean check: {rows} rows, {len(unreadable)} unreadable"]
        lines.append(f"pictures, timm ImageDataset: {timm}")
        if asked.cleanvision:
            said = _cleanvision(folder / "folder", asked.cleanvision, unreadable)
            lines += [f"pictures, cleanvision, {line}" for line in said]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
