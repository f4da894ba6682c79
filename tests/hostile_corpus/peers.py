"""The same hostile inputs given to others: `PYTHONPATH=tests python -m hostile_corpus.peers`.

cleanlab takes probabilities, timm's ImageDataset and cleanvision take folders of pictures. What is
not installed (extra `benchmark`, cleanvision) is left out.
"""

import importlib.util
import json
import shutil
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


def pictures(folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Count what labelclean and timm's ImageDataset make of a folder with damaged pictures."""
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
    ours = {"rows": facts["rows"], "named as unreadable": len(facts["unreadable"])}
    return ours, _timm(target)


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


def _cleanvision(folder: Path) -> str:
    if importlib.util.find_spec("cleanvision") is None:
        return "cleanvision is not installed"
    from cleanvision import Imagelab

    try:
        Imagelab(data_path=str(folder)).find_issues(n_jobs=1, verbose=False)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        return f"aborts: {type(error).__name__}: {str(error)[:80]}"
    return "goes through"


def main() -> int:
    """Print both comparisons."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = ["| probabilities | labelclean | cleanlab |", "|---|---|---|"]
        found = probabilities(folder / "arrays")
        lines += [f"| {case} | {ours} | {theirs} |" for case, ours, theirs in found]
        ours, timm = pictures(folder)
        lines += ["", f"pictures, labelclean check: {ours}", f"pictures, timm ImageDataset: {timm}"]
        lines.append(f"pictures, cleanvision: {_cleanvision(folder / 'folder')}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
