"""The table of faults: `PYTHONPATH=tests python -m faults.table --kills 300 --failures 200`."""

import argparse
import functools
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from faults.scenes import Scene

os.environ.setdefault("OMP_NUM_THREADS", "1")

WARM = (
    "labelclean.workflows.audit", "labelclean.workflows.retrain", "labelclean.workflows.predict",
    "labelclean.workflows.report",
    "labelclean.correction.outcome", "labelclean.workflows.export", "labelclean.benchmark.planting",
    "labelclean.cli.audit", "labelclean.cli.export", "labelclean.cli.retrain",
    "labelclean.cli.predict", "labelclean.cli.report", "labelclean.cli.inject",
    "labelclean.models.lite0", "labelclean.workflows.rounds", "sklearn.metrics",
    "matplotlib.figure",
)  # fmt: skip


def warm_up() -> None:
    """Import everything once; the children inherit it."""
    import importlib

    import torch

    torch.set_num_threads(1)
    for name in WARM:
        importlib.import_module(name)
    # Heat maps are drawn elsewhere; here they would take most of the time.
    # Nor is this about arithmetic: heads that only give evidence, and write nothing, train shortly.
    evidence = sys.modules["labelclean.evidence.features"]
    evidence.TRIAL_EPOCHS = 1
    full = evidence.PreparedFeatures.head
    evidence.PreparedFeatures.head = lambda this, label, name, params, epochs=None, *rest: full(
        this, label, name, params, epochs or 2, *rest
    )
    settings = sys.modules["labelclean.evidence.noise_aware"]
    settings.NoiseAwareSettings = functools.partial(settings.NoiseAwareSettings, epochs=6)
    sys.modules["labelclean.outputs.run_folder"].matrix_png = lambda *_, **__: b"a picture"
    truth = sys.modules["labelclean.outputs.truth"]
    if hasattr(truth, "matrix_png"):
        truth.matrix_png = lambda *_, **__: b"a picture"


def spread(total: int, counts: Sequence[int], *, equal: bool = False) -> list[list[int]]:
    """Share `total` points among scenes, by their operations or equally; evenly spaced."""
    every = sum(counts)
    points = []
    for count in counts:
        share = 1 / len(counts) if equal else count / every
        wanted = min(count, max(1, round(total * share)))
        points.append([int((at + 0.5) * count / wanted) for at in range(wanted)])
    short = total - sum(map(len, points))
    for count, chosen in zip(counts, points, strict=True):
        free = [at for at in range(count) if at not in set(chosen)]
        taken = free[: max(0, short)]
        chosen.extend(taken)
        short -= len(taken)
    return points


def main() -> int:
    """Run the trials and print the table; exit code 1 if anything was lost or mixed up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--failures", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="only the scenes that take a moment")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--scene", help="only this one")
    asked = parser.parse_args()
    warm_up()
    from faults.scenes import SCENES
    from faults.trap import ERRORS, KILL
    from faults.trials import Stage, Trial

    began = time.perf_counter()
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory() as folder:
        scenes = tuple(scene for scene in SCENES if _wanted(scene, asked))
        stage = Stage(Path(folder).resolve(), scenes)
        counts = [len(known.log) for known in stage.undisturbed]
        sys.stderr.write(
            f"{sum(counts)} operations, ready after {time.perf_counter() - began:.0f} s\n"
        )
        for kinds, total in (((KILL,), asked.kills), (tuple(ERRORS), asked.failures)):
            chosen = spread(total, counts, equal=asked.quick)
            for known, points in zip(stage.undisturbed, chosen, strict=True):
                for number, at in enumerate(points):
                    trial = stage.trial(known, at, kinds[number % len(kinds)])
                    trials.append(trial)
                    if trial.faults:
                        sys.stderr.write(f"{trial}\n")
                        sys.stderr.flush()
    bad = [trial for trial in trials if trial.faults]
    if asked.json:
        kills = sum(trial.what == KILL for trial in trials)
        facts = {"tried": len(trials), "kills": kills, "bad": [str(trial) for trial in bad]}
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        sys.stdout.write(_table(trials, time.perf_counter() - began))
    return 1 if bad else 0


def _wanted(scene: "Scene", asked: argparse.Namespace) -> bool:
    return (scene.quick or not asked.quick) and asked.scene in (None, scene.name)


def _table(trials: list, seconds: float) -> str:
    tried = Counter((trial.what, trial.operation) for trial in trials)
    bad = Counter((trial.what, trial.operation) for trial in trials if trial.faults)
    lines = ["| fault | at | times tried | same result after going on |", "|---|---|---|---|"]
    for what, operation in sorted(tried, key=lambda key: (key[0] != "kill", key)):
        count = tried[what, operation]
        name = "killed" if what == "kill" else what
        lines.append(f"| {name} | {operation} | {count} | {count - bad[what, operation]} |")
    scenes = Counter(trial.scene for trial in trials)
    lines.append("\n" + ", ".join(f"{name} {count}" for name, count in scenes.items()))
    lines.append(f"{len(trials)} trials, {sum(bad.values())} bad, {seconds:.0f} s\n")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
